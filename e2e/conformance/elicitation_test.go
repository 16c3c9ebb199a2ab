package conformance

import (
	"context"
	"encoding/json"
	"path/filepath"
	"testing"

	"cellblock/e2e/rig"
)

// Both TypeScript SDKs answer a tool's questions through the whole middleware.
func TestElicitationWithTheSDKs(t *testing.T) {
	node := rig.NeedNode(t)
	dir := node.Scripts(t, filepath.Join("..", "sdk"))
	endpoint := serve(t)
	for _, sdk := range []string{"sdk1", "sdk2"} {
		t.Run(sdk, func(t *testing.T) {
			ctx, cancel := context.WithTimeout(t.Context(), limit)
			defer cancel()
			to, err := json.Marshal(map[string]string{"sdk": sdk, "url": endpoint})
			if err != nil {
				t.Fatal(err)
			}
			if out, err := node.Command(ctx, filepath.Join(dir, "elicit.mjs"), string(to)).CombinedOutput(); err != nil {
				t.Errorf("%v\n%s", err, out)
			}
		})
	}
}
