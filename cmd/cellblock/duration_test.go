package main

import (
	"testing"
	"time"
)

func TestDurationFlag(t *testing.T) {
	for _, tt := range []struct {
		text string
		unit time.Duration
		want time.Duration // 0: an error
	}{
		{"5s", 0, 5 * time.Second}, {"90d", 0, 90 * 24 * time.Hour}, {"-1d", 0, 0}, {"1h30m", time.Second, 90 * time.Minute}, {"300", time.Second, 5 * time.Minute},
		{"5", 0, 0}, {"soon", time.Second, 0}, {"", time.Second, 0}, {"0", time.Second, 0}, {"-5s", time.Second, 0}, {"1.5", time.Second, 0},
		{"99999999999", time.Second, 0},
	} {
		var got time.Duration
		err := (&durationFlag{value: &got, unit: tt.unit}).Set(tt.text)
		if (err == nil) != (tt.want > 0) || err == nil && got != tt.want {
			t.Errorf("%q: %v, %v", tt.text, got, err)
		}
	}
}
