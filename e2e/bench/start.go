package main

import (
	"context"
	"path/filepath"
)

// measureStart tells how long it takes from the program's start until it says that it is ready, and has answered a call.
func measureStart(ctx context.Context, o options, dir string) (report, error) {
	folder := filepath.Join(dir, "start")
	var times []float64
	for range o.rounds + 1 {
		took, err := bareStart(ctx, o, folder, []string{"--provisioner", "local"})
		if err != nil {
			return report{}, err
		}
		times = append(times, took)
	}
	return report{costs: []cost{{what: "from the server's start to the answer to its first call, without a pool", value: median(times[1:]), unit: "ms", goal: 150}}}, nil
}
