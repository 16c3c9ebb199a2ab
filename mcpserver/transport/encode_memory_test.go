//go:build !race

package transport

import (
	"runtime"
	"strings"
	"testing"

	"github.com/mark3labs/mcp-go/mcp"
)

// A large resource is in memory once more while it is written, not several times.
func TestEncodeAllocatesOnce(t *testing.T) {
	response := resources(mcp.TextResourceContents{URI: "u", Text: strings.Repeat("0123456789\n", 2<<20)})
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	got, err := encode(response)
	runtime.ReadMemStats(&after)
	if took := after.TotalAlloc - before.TotalAlloc; err != nil || took > uint64(len(got))*11/10 {
		t.Errorf("%d bytes took %d, %v", len(got), took, err)
	}
}
