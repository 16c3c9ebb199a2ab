package main

import (
	"errors"
	"fmt"
	"math"
	"reflect"
	"strconv"
	"strings"
	"time"

	"github.com/docker/go-units"
	"github.com/go-viper/mapstructure/v2"

	"cellblock/internal/fault"
	"cellblock/internal/words"
)

// origins say for each key where its value comes from: a file, a variable, a flag.
type origins map[string]string

// byDefault is the origin of what nobody has set.
const byDefault = "default"

// set tells whether somebody has set a key, to its default perhaps.
func (o origins) set(key string) bool { return o[key] != "" && o[key] != byDefault }

// decode makes a Config of all values, which are nested as in a file.
func decode(all map[string]any, where origins) (*Config, error) {
	var cfg Config
	decoder, err := mapstructure.NewDecoder(&mapstructure.DecoderConfig{
		Result: &cfg, TagName: "koanf", WeaklyTypedInput: true, ErrorUnused: true,
		DecodeHook: mapstructure.ComposeDecodeHookFunc(
			decodeSize,
			decodeDuration,
			decodeWhole,
			mapstructure.StringToSliceHookFunc(",")),
	})
	if err != nil {
		return nil, fault.New(fault.Internal, "configuration: %w", err)
	}
	if err := decoder.Decode(all); err != nil {
		return nil, where.explain(err)
	}
	return &cfg, nil
}

// leastSize is what no size is less than, in bytes, that anybody means: who writes 10 means megabytes, or gigabytes.
const leastSize = 1024

// decodeSize reads sizes, in binary units.
func decodeSize(_, to reflect.Type, value any) (any, error) {
	if to != reflect.TypeFor[Size]() {
		return value, nil
	}
	text := fmt.Sprint(value)
	n, err := units.RAMInBytes(text)
	if err != nil {
		return nil, fault.New(fault.Invalid, "%q is not a size", text).WithHint("Write it as 512MB or 2GB.")
	}
	if n != 0 && n < leastSize {
		return nil, fault.New(fault.Invalid, "%q is a size of %s", text, words.Bytes(n)).WithHint("Write it with its unit, as 512MB or 2GB.")
	}
	return n, nil
}

// decodeDuration reads durations, and only with a unit: a bare 5 would be five nanoseconds.
func decodeDuration(_, to reflect.Type, value any) (any, error) {
	if to != reflect.TypeFor[time.Duration]() {
		return value, nil
	}
	text := fmt.Sprint(value)
	d, err := parseDuration(text)
	if err != nil {
		return nil, fault.New(fault.Invalid, "%q is not a duration", text).WithHint("Write it as 90s, 10m, 1h or 30d.")
	}
	return d, nil
}

// decodeWhole refuses to cut a number where a whole one is wanted.
func decodeWhole(_, to reflect.Type, value any) (any, error) {
	f, ok := value.(float64)
	if whole := to.Kind() == reflect.Int || to.Kind() == reflect.Int64; ok && whole && f != math.Trunc(f) {
		return nil, fmt.Errorf("\"%v\" is not %s", value, wanted(to.Kind()))
	}
	return value, nil
}

// parseDuration is time.ParseDuration that knows whole days, too.
func parseDuration(text string) (time.Duration, error) {
	days, ok := strings.CutSuffix(text, "d")
	if !ok {
		return time.ParseDuration(text)
	}
	n, err := strconv.ParseUint(days, 10, 16) // of more it is no duration any more
	return time.Duration(n) * 24 * time.Hour, err
}

// explain says which value cannot be read, where it stands and what is wanted there.
func (o origins) explain(err error) error {
	var broken *mapstructure.DecodeError
	if !errors.As(err, &broken) {
		return fault.New(fault.Invalid, "configuration: %w", err)
	}
	key := strings.NewReplacer("[", ".", "]", "").Replace(broken.Name())
	why := broken.Unwrap()
	var unread *mapstructure.ParseError
	var misplaced *mapstructure.UnconvertibleTypeError
	switch {
	case errors.As(why, &unread):
		why = fmt.Errorf("%q is not %s", fmt.Sprint(unread.Value), wanted(unread.Expected.Kind()))
	case errors.As(why, &misplaced):
		why = fmt.Errorf("%q is not %s", fmt.Sprint(misplaced.Value), wanted(misplaced.Expected.Kind()))
	}
	if where := o[key]; where != "" {
		key += " (" + where + ")"
	}
	return fault.New(fault.Invalid, "configuration: %s: %w", key, why)
}

// wanted is what can be read as a kind, in words.
func wanted(kind reflect.Kind) string {
	switch kind {
	case reflect.Int, reflect.Int64:
		return "a whole number"
	case reflect.Float64:
		return "a number"
	case reflect.Bool:
		return "true or false"
	case reflect.String:
		return "a text"
	case reflect.Slice:
		return "a list"
	}
	return "a group of keys"
}
