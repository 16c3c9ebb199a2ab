package viewer

import (
	"fmt"
	"strings"

	"cellblock/internal/words"
	"cellblock/sessions"
)

const (
	// sparkSamples is how many of the last samples a line shows, in a box of sparkWidth by sparkHeight.
	sparkSamples            = 45
	sparkWidth, sparkHeight = 72, 18
)

// spark is a small line of what was used, with what it is now.
type spark struct {
	Kind, Label, Now string
	// Points are those of an SVG polyline.
	Points string
}

// usageOf makes the lines of a session's samples, of which there is at least one.
func usageOf(samples []sessions.Sample) []spark {
	samples = samples[max(0, len(samples)-sparkSamples):]
	last := samples[len(samples)-1]
	var memory, cpu []float64
	for _, s := range samples {
		memory, cpu = append(memory, float64(s.Memory)), append(cpu, s.CPU)
	}
	used := words.Bytes(last.Memory)
	label := "Memory " + used
	if last.MemoryLimit > 0 {
		label += " of " + words.Bytes(last.MemoryLimit)
	}
	busy := percent(last.CPU)
	return []spark{
		{"memory", label, used, points(memory, float64(last.Memory)*1.25)},
		{"cpu", "CPU " + busy, busy, points(cpu, 1)},
	}
}

// percent is a number of CPUs as all pages write it: 100 % is one.
func percent(cpus float64) string { return fmt.Sprintf("%.0f %%", cpus*100) }

// points draws values from zero up to the largest, or to least where that is more.
func points(values []float64, least float64) string {
	most := least
	for _, v := range values {
		most = max(most, v)
	}
	if most <= 0 {
		most = 1
	}
	if len(values) == 1 {
		values = append(values, values[0]) // a line of one point is not drawn
	}
	var b strings.Builder
	first := sparkSamples - len(values) // the newest is at the right
	for i, v := range values {
		x := 1 + float64(first+i)*(sparkWidth-2)/(sparkSamples-1)
		fmt.Fprintf(&b, "%.1f,%.1f ", x, 1+(sparkHeight-2)*(1-v/most))
	}
	return strings.TrimSpace(b.String())
}
