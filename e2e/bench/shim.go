package main

import (
	"context"
	"fmt"
	"os/exec"
	"regexp"
	"strconv"
)

var shimFigures = regexp.MustCompile(`([\d.]+) MB-resident\s+([\d.]+) ms-to-exec`)

// measureShim tells what the shim costs, by its own benchmark.
func measureShim(ctx context.Context, _ options, _ string) (report, error) {
	cmd := exec.CommandContext(ctx, "go", "test", "-run", "^$", "-bench", "ShimStart", "-benchtime", "10x", "./kernels/shim")
	out, err := cmd.CombinedOutput()
	found := shimFigures.FindSubmatch(out)
	if err != nil || found == nil {
		return report{}, fmt.Errorf("the shim's benchmark: %w\n%s", err, out)
	}
	figure := func(i int) float64 { f, _ := strconv.ParseFloat(string(found[i]), 64); return f }
	return report{costs: []cost{
		{what: "memory of a shim that has just started", value: figure(1), unit: "MB"},
		{what: "from the shim's start to its kernel's", value: figure(2), unit: "ms"},
	}}, nil
}
