package viewer

import (
	"strings"
	"testing"
)

// A line is drawn from the first sample on, whole, and ends at the right.
func TestPointsOfALine(t *testing.T) {
	for _, tt := range []struct {
		values []float64
		want   string
	}{
		{[]float64{1}, "69.4,1.0 71.0,1.0"},
		{[]float64{0, 1, 2}, "67.8,17.0 69.4,9.0 71.0,1.0"},
	} {
		if got := points(tt.values, 1); got != tt.want {
			t.Errorf("%v is drawn as %s, want %s", tt.values, got, tt.want)
		}
	}
	many := make([]float64, sparkSamples)
	if got := points(many, 1); !strings.HasPrefix(got, "1.0,17.0 ") || !strings.HasSuffix(got, " 71.0,17.0") {
		t.Errorf("%s", got)
	}
}
