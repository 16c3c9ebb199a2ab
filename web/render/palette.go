package render

import (
	"fmt"
	"regexp"
	"strconv"
)

// The sixteen colours of terminals, of which a page has a light and a dark form. The 240 others of an extended terminal become the one
// of these that is nearest, so that they can be read on both.
var basic = [16][3]int{
	{0, 0, 0}, {187, 0, 0}, {0, 150, 0}, {170, 130, 0}, {0, 0, 187}, {170, 0, 170}, {0, 150, 150}, {170, 170, 170},
	{110, 110, 110}, {255, 85, 85}, {85, 255, 85}, {255, 255, 85}, {85, 85, 255}, {255, 85, 255}, {85, 255, 255}, {255, 255, 255},
}

var extended = regexp.MustCompile(`term-(f|b)gx(\d{1,3})\b`)

// readable replaces the classes of extended colours.
func readable(html string) string {
	return extended.ReplaceAllStringFunc(html, func(class string) string {
		m := extended.FindStringSubmatch(class)
		n, _ := strconv.Atoi(m[2]) // it is digits
		near, base := nearest(n), 30
		if m[1] == "b" {
			base = 40
		}
		if near >= 8 {
			return fmt.Sprintf("term-%sgi%d", m[1], base+60+near-8)
		}
		return fmt.Sprintf("term-%sg%d", m[1], base+near)
	})
}

// nearest is the basic colour that comes closest to one of 256.
func nearest(n int) int {
	if n < 16 {
		return n
	}
	colour, best, least := rgb(n), 0, 1<<30
	for i, b := range basic {
		distance := 0
		for c := range 3 {
			distance += (colour[c] - b[c]) * (colour[c] - b[c])
		}
		if distance < least {
			best, least = i, distance
		}
	}
	return best
}

// rgb is a colour of the cube of 216, or one of the 24 greys.
func rgb(n int) [3]int {
	if n >= 232 {
		grey := 8 + 10*(n-232)
		return [3]int{grey, grey, grey}
	}
	level := func(i int) int {
		if i == 0 {
			return 0
		}
		return 55 + 40*i
	}
	n -= 16
	return [3]int{level(n / 36), level(n / 6 % 6), level(n % 6)}
}
