package render

import (
	"fmt"
	"regexp"
	"strconv"
	"strings"
)

// The sixteen colours of terminals, of which a page has a light and a dark form. The 240 others of an extended terminal, and the millions
// that others mix, become the one of these that is nearest, so that they can be read on both.
var basic = [16][3]int{
	{0, 0, 0}, {187, 0, 0}, {0, 150, 0}, {170, 130, 0}, {0, 0, 187}, {170, 0, 170}, {0, 150, 150}, {170, 170, 170},
	{110, 110, 110}, {255, 85, 85}, {85, 255, 85}, {255, 255, 85}, {85, 85, 255}, {255, 85, 255}, {85, 255, 255}, {255, 255, 255},
}

var (
	styled   = regexp.MustCompile(`<span class="[^"]*">`)
	extended = regexp.MustCompile(`term-(f|b)gx(\d{1,3})\b`)
	blinking = regexp.MustCompile(`term-fg5\b`)
)

// readable replaces the classes of extended colours, and of what stands for inverse ones.
func readable(html string) string {
	return styled.ReplaceAllStringFunc(html, func(tag string) string {
		return blinking.ReplaceAllString(basicClasses(tag), "term-fg7")
	})
}

func basicClasses(tag string) string {
	return extended.ReplaceAllStringFunc(tag, func(class string) string {
		m := extended.FindStringSubmatch(class)
		n, _ := strconv.Atoi(m[2]) // it is digits
		near, base := n, 30
		if n >= 16 {
			near = nearest(rgb(n))
		}
		if m[1] == "b" {
			base = 40
		}
		if near >= 8 {
			return fmt.Sprintf("term-%sgi%d", m[1], base+60+near-8)
		}
		return fmt.Sprintf("term-%sg%d", m[1], base+near)
	})
}

// A sequence that sets colours, and a colour in it of so much red, green and blue, of which the screen knows nothing.
var (
	colouring  = regexp.MustCompile(`\x1b\[[0-9;]+m`)
	trueColour = regexp.MustCompile(`([34]8);2;(\d{1,3});(\d{1,3});(\d{1,3})`)
)

// basicColours has a text for a terminal use basic colours where it mixes its own.
func basicColours(text string) string {
	if !strings.Contains(text, "8;2;") {
		return text
	}
	return colouring.ReplaceAllStringFunc(text, func(sequence string) string {
		return trueColour.ReplaceAllStringFunc(sequence, func(colour string) string {
			m := trueColour.FindStringSubmatch(colour)
			var mixed [3]int
			for i := range mixed {
				mixed[i], _ = strconv.Atoi(m[2+i]) // it is digits
			}
			return fmt.Sprintf("%s;5;%d", m[1], nearest(mixed))
		})
	})
}

// inverse has a text for a terminal blink where its colours are inverse, of which the screen knows nothing, and nowhere else: on a page
// nothing blinks. Its colours are basic or extended.
func inverse(text string) string {
	return colouring.ReplaceAllStringFunc(text, func(sequence string) string {
		numbers := strings.Split(sequence[len("\x1b["):len(sequence)-1], ";")
		for i := 0; i < len(numbers); i++ {
			switch strings.TrimLeft(numbers[i], "0") {
			case "38", "48":
				i += 2 // the number of a colour
			case "5", "6", "25":
				numbers[i] = "10" // which changes nothing
			case "7":
				numbers[i] = "5"
			case "27":
				numbers[i] = "25"
			}
		}
		return "\x1b[" + strings.Join(numbers, ";") + "m"
	})
}

// nearest is the basic colour that comes closest to one.
func nearest(colour [3]int) int {
	best, least := 0, 1<<30
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
