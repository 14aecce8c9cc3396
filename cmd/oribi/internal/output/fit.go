package output

// Widths of columns on a terminal.
const (
	gap       = 2  // columns of the terminal between two columns of the table
	leastText = 8  // a column of text is not cut below this
	mostWidth = 60 // without a terminal, a wider cell sticks out, so that it does not push its column apart
)

// column is what fitting needs to know of a column: the widest cell seen, the header's width, and
// whether cells may be cut; and whether they are sizes.
type column struct {
	cells, header int
	figures       int // width of the widest figure among texts
	cut, size     bool
}

func (c *column) natural() int { return max(c.cells, c.header) }

// least is the width below which the column is left out rather than made narrower. Numbers and
// dates are never cut.
func (c *column) least() int {
	if c.cut {
		return min(c.natural(), leastText)
	}
	return max(c.cells, min(c.header, leastText))
}

// fit gives the columns the widths that they take on a terminal of so many columns: those they need
// if there is room, else the widest are cut first, down to equal widths; where that is not enough,
// columns at the end are left out, so that the result may be shorter than columns. The first one
// always stays.
func fit(columns []column, terminal int) []int {
	shown := len(columns)
	for shown > 1 && total(columns[:shown], (*column).least) > room(shown, len(columns), terminal) {
		shown--
	}
	left := room(shown, len(columns), terminal)
	columns = columns[:shown]
	widths := make([]int, shown)
	if total(columns, (*column).natural) <= left {
		for i := range columns {
			widths[i] = columns[i].natural()
		}
		return widths
	}
	for i := range columns {
		widths[i] = max(min(columns[i].least(), left), 1) // less than it needs only if it stands alone
		left -= widths[i]
	}
	// One column of the terminal at a time to the narrowest column that wants one.
	for left > 0 {
		narrowest := -1
		for i := range columns {
			if widths[i] < columns[i].natural() && (narrowest < 0 || widths[i] < widths[narrowest]) {
				narrowest = i
			}
		}
		if narrowest < 0 {
			break
		}
		widths[narrowest]++
		left--
	}
	return widths
}

// room is what a terminal has for the cells of the first columns, the gaps taken off, and, where
// some are left out, what says so.
func room(shown, all, terminal int) int {
	terminal -= gap * (shown - 1)
	if shown < all {
		terminal -= gap + 1
	}
	return terminal
}

func total(columns []column, width func(*column) int) (sum int) {
	for i := range columns {
		sum += width(&columns[i])
	}
	return sum
}
