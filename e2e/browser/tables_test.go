package browser

import (
	"fmt"
	"testing"

	"github.com/chromedp/chromedp"
)

// wideTables are tables of pandas that are wider and longer than what is seen of them: with an index, with one of two levels and such
// columns, with one of long texts.
var wideTables = []string{
	"import numpy as np, pandas as pd\nnumbers = lambda n, m: np.arange(n * m).reshape(n, m)\n" +
		"pd.DataFrame(numbers(50, 30), columns=[f'a long column {i}' for i in range(30)], index=[f'row {i}' for i in range(50)])",
	"pd.DataFrame(numbers(48, 24), index=pd.MultiIndex.from_product([['north', 'south'], range(24)], names=['side', 'hour']),\n" +
		"    columns=pd.MultiIndex.from_product([['rain', 'snow'], [f'station {i}' for i in range(12)]]))",
	"pd.DataFrame(numbers(50, 30), columns=[f'a long column {i}' for i in range(30)], index=['a name that is long ' * 5] * 50)",
}

// Of a table that is scrolled both ways the index stays in sight, with all its levels, under the heads of columns, which stay with all of
// theirs; an index that would take most of the room does not.
func TestIndexStaysInSight(t *testing.T) {
	s := shared(t)
	c := s.mcp(t)
	for _, code := range wideTables {
		s.python(t, c, "wide-tables", code)
	}
	p := s.signIn(t)
	for _, size := range [][2]int64{{1280, 900}, {390, 844}} {
		p.do(chromedp.EmulateViewport(size[0], size[1]))
		p.open("/s/wide-tables")
		for n, tt := range []struct {
			levels int // of the index that stay
			rows   int // that name columns
		}{{1, 1}, {2, 3}, {0, 1}} {
			p.untilCell(n+1, "cell.querySelector('.html table')")
			eval[bool](p, fmt.Sprintf("(document.querySelector('#c%d .html').scrollTo(900, 300), true)", n+1))
			// What is seen in the corner, and in a row that is in sight, from the left.
			p.until(fmt.Sprintf(`(() => {
				const box = document.querySelector('#c%d .html'), at = box.getBoundingClientRect(), heads = box.querySelectorAll('thead tr');
				const seen = (x, y) => document.elementFromPoint(x, y)?.closest('th, td');
				const under = heads[heads.length - 1].getBoundingClientRect().bottom;
				if (box.scrollLeft !== 900 || box.scrollTop !== 300 || heads.length !== %d || heads[0].getBoundingClientRect().top !== at.top) return false;
				let x = at.left + 3;
				for (let level = 0; level < %[3]d; level++) {
					const name = seen(x, under + 40), corner = seen(x, under - 3);
					if (name?.dataset.index !== String(level) || corner?.dataset.index !== String(level) || !corner.closest('thead')) return false;
					for (const cell of [name, corner]) if (/, 0\)|transparent/.test(getComputedStyle(cell).backgroundColor)) return false;
					x = name.getBoundingClientRect().right + 3;
				}
				return seen(x, under + 40)?.localName === 'td' && seen(x, under - 3)?.closest('thead') && !seen(x, under - 3).dataset.index;
			})()`, n+1, tt.rows, tt.levels))
		}
	}
}
