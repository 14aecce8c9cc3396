package output

// Widths of columns on a terminal.
const (
	gap       = 2  // columns of the terminal between two columns of the table
	leastText = 8  // minimum width of a text column that is cut
	mostWidth = 60 // without a terminal, a wider cell sticks out instead of widening its column
)

// column describes a column for fit: the width of the widest cell seen and of the header, whether
// cells may be cut, and whether they are sizes.
type column struct {
	cells, header int
	figures       int // width of the widest figure among texts
	cut, size     bool
}

func (c *column) natural() int { return max(c.cells, c.header) }

// least returns the width below which the column is omitted. Numbers and dates are never cut.
func (c *column) least() int {
	if c.cut {
		return min(c.natural(), leastText)
	}
	return max(c.cells, min(c.header, leastText))
}

// fit returns the widths of columns on a terminal. If there is room, each column is as wide as its
// widest cell; else the widest columns are cut first, down to equal widths. If that is not enough,
// fit omits columns at the end, so that the result may be shorter than columns. It never omits the
// first one.
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
		widths[i] = max(min(columns[i].least(), left), 1) // less than it needs only if it is the only column
		left -= widths[i]
	}
	// One position of the terminal at a time goes to the narrowest column that needs one.
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

// room returns the width available for the cells of the first columns, without the gaps and, if
// columns are omitted, without the mark that says so.
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
