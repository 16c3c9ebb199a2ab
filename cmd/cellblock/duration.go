package main

import (
	"errors"
	"strconv"
	"time"
)

// durationFlag is a flag whose value is a duration.
type durationFlag struct {
	value *time.Duration
	// unit is what a number without one counts; 0: it needs one.
	unit time.Duration
}

// Set reads a duration as people write it.
func (d *durationFlag) Set(text string) error {
	n, err := strconv.ParseInt(text, 10, 32)
	if err == nil && d.unit > 0 {
		*d.value = time.Duration(n) * d.unit
	} else if *d.value, err = parseDuration(text); err != nil {
		return errors.New("write it as 90s, 10m, 1h or 30d")
	}
	if *d.value <= 0 {
		return errors.New("it must be more than nothing")
	}
	return nil
}

// String returns the value, "" for none.
func (d *durationFlag) String() string {
	if d.value == nil || *d.value == 0 {
		return ""
	}
	return d.value.String()
}

// Type is how help calls it.
func (d *durationFlag) Type() string { return "duration" }
