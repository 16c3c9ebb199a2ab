// Package words is how sizes, counts and durations are written wherever a person or a model reads them: with a space before the
// unit, and no more digits than tell something.
package words

import (
	"fmt"
	"strconv"
	"strings"
	"time"
)

// Bytes returns "1 byte", "512 bytes", "1.5 KiB", "2 GiB".
func Bytes(n int64) string {
	if n < 1024 {
		return Count(n, "byte")
	}
	units := []string{"KiB", "MiB", "GiB", "TiB", "PiB"}
	value, unit := float64(n)/1024, 0
	for value >= 1023.95 && unit < len(units)-1 { // what would be written as 1024
		value /= 1024
		unit++
	}
	return strings.TrimSuffix(strconv.FormatFloat(value, 'f', 1, 64), ".0") + " " + units[unit]
}

// Count returns "1 line" or "20,000 lines".
func Count(n int64, noun string) string {
	if n == 1 {
		return "1 " + noun
	}
	return Thousands(n) + " " + noun + "s"
}

// Thousands returns "20,000".
func Thousands(n int64) string {
	s := strconv.FormatInt(n, 10)
	for i := len(s) - 3; i > 0 && s[i-1] != '-'; i -= 3 {
		s = s[:i] + "," + s[i:]
	}
	return s
}

// Took returns how long something took: "0.12 s", "3.4 s", "75 s".
func Took(d time.Duration) string {
	switch s := d.Seconds(); {
	case s < 1:
		return fmt.Sprintf("%.2f s", s)
	case s < 9.95:
		return fmt.Sprintf("%.1f s", s)
	default:
		return fmt.Sprintf("%.0f s", s)
	}
}

// Span returns how far away something is: "1 s", "12 min", "5 h", "3 days"; from two hours or days on in these. What is less than
// nothing is none.
func Span(d time.Duration) string {
	switch {
	case d < time.Minute:
		return fmt.Sprintf("%d s", max(0, int(d.Seconds())))
	case d < 2*time.Hour:
		return fmt.Sprintf("%d min", int(d.Minutes()))
	case d < 48*time.Hour:
		return fmt.Sprintf("%d h", int(d.Hours()))
	}
	return fmt.Sprintf("%d days", int(d.Hours()/24))
}

// Ago returns how long ago a time was: "1 s ago".
func Ago(t time.Time) string { return Span(time.Since(t)) + " ago" }

// Length writes a duration that somebody has set in its largest whole unit: "5 minutes", "90 seconds".
func Length(d time.Duration) string {
	for _, unit := range []struct {
		length time.Duration
		name   string
	}{{time.Hour, "hour"}, {time.Minute, "minute"}, {time.Second, "second"}} {
		if d >= unit.length && d%unit.length == 0 {
			return Count(int64(d/unit.length), unit.name)
		}
	}
	return strconv.FormatFloat(d.Seconds(), 'f', -1, 64) + " seconds"
}
