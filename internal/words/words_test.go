package words

import (
	"testing"
	"time"
)

func TestBytes(t *testing.T) {
	for n, want := range map[int64]string{
		0: "0 bytes", 1: "1 byte", 1023: "1,023 bytes", 1024: "1 KiB", 1536: "1.5 KiB", 1<<20 - 1: "1 MiB", 1 << 20: "1 MiB", 33 << 20: "33 MiB",
		5<<30 + 200<<20: "5.2 GiB", 3 << 40: "3 TiB", 1 << 60: "1024 PiB",
	} {
		if got := Bytes(n); got != want {
			t.Errorf("%d is %q, want %q", n, got, want)
		}
	}
}

func TestCount(t *testing.T) {
	for n, want := range map[int64]string{0: "0 lines", 1: "1 line", 999: "999 lines", 1000: "1,000 lines", -1234567: "-1,234,567 lines", -123: "-123 lines"} {
		if got := Count(n, "line"); got != want {
			t.Errorf("%d is %q, want %q", n, got, want)
		}
	}
}

func TestDurations(t *testing.T) {
	for _, tt := range []struct {
		d                  time.Duration
		took, span, length string
	}{
		{0, "0.00 s", "0 s", "0 seconds"},
		{-time.Second, "-1.00 s", "0 s", "-1 seconds"},
		{120 * time.Millisecond, "0.12 s", "0 s", "0.12 seconds"},
		{1500 * time.Millisecond, "1.5 s", "1 s", "1.5 seconds"},
		{9990 * time.Millisecond, "10 s", "9 s", "9.99 seconds"},
		{90 * time.Second, "90 s", "1 min", "90 seconds"},
		{time.Hour, "3600 s", "60 min", "1 hour"},
		{5*time.Hour + 59*time.Minute, "21540 s", "5 h", "359 minutes"},
		{50 * time.Hour, "180000 s", "2 days", "50 hours"},
	} {
		if took, span, length := Took(tt.d), Span(tt.d), Length(tt.d); took != tt.took || span != tt.span || length != tt.length {
			t.Errorf("%v: %q, %q, %q", tt.d, took, span, length)
		}
	}
}

func TestThousands(t *testing.T) {
	for n, want := range map[int64]string{0: "0", 999: "999", 1000: "1,000", 1234567: "1,234,567", -1000: "-1,000"} {
		if got := Thousands(n); got != want {
			t.Errorf("%d: %s", n, got)
		}
	}
	for n, want := range map[int64]string{512: "512 bytes", 2 << 30: "2 GiB", 1536 << 20: "1.5 GiB"} {
		if got := Bytes(n); got != want {
			t.Errorf("%d: %s", n, got)
		}
	}
}
