package peer

import (
	"fmt"
	"slices"
	"strings"

	"github.com/oribi-db/oribi/bench/inputs"
)

// Question is a query over all of lineitem.
type Question string

// The queries. Q1 and Q6 are TPC-H's queries on lineitem, in integers: prices, discounts and taxes
// are in hundredths.
const (
	Sum      Question = "sum"        // sum of l_partkey
	FewRows  Question = "filter-few" // sum of l_extendedprice where l_partkey is below FewBelow
	SomeRows Question = "filter-some"
	// where l_quantity is NoQuantity, which no row has although it is between minimum and maximum
	NoRows Question = "filter-none"
	Group  Question = "group" // count and sum of l_quantity by l_shipmode, which has seven values
	Q1     Question = "q1"
	Q6     Question = "q6"
)

// Constants of the queries. l_partkey is uniform between 1 and 200,000.
const (
	FewBelow   = 201   // 0.1 % of the rows
	SomeBelow  = 40001 // 20 %
	NoQuantity = 1250  // 12.50
	Q1Until    = 10471 // 1998-09-02, inclusive
	Q6From     = 8766  // 1994-01-01, inclusive
	Q6Until    = 9131  // 1995-01-01
	Q6Least    = 5     // discount, hundredths, inclusive
	Q6Most     = 7     // inclusive
	Q6Below    = 2400  // quantity, hundredths
)

// Answer contains the rows of a query's result: a key of up to two strings, and sums.
type Answer struct{ groups map[string]*[8]int64 }

// Group contains the sums of a group.
func (a *Answer) Group(key string) *[8]int64 {
	g := a.groups[key]
	if g == nil {
		if a.groups == nil {
			a.groups = map[string]*[8]int64{}
		}
		g = new([8]int64)
		a.groups[key] = g
	}
	return g
}

func (a *Answer) String() string {
	var lines []string
	for key, g := range a.groups {
		if *g == [8]int64{} {
			continue // no rows: SQL returns one row of NULLs or zeros
		}
		last := len(g)
		for last > 1 && g[last-1] == 0 {
			last--
		}
		lines = append(lines, fmt.Sprint(key, g[:last]))
	}
	if len(lines) == 0 {
		return "no rows"
	}
	slices.Sort(lines)
	return strings.Join(lines, " ")
}

// Columns are the columns that a query reads.
type Columns struct {
	PartKey, Quantity, Price, Discount, Tax []int64
	ShipDate                                []int32
	Flag, Status, Mode                      [][]byte
}

// Needs returns the names of the columns that a query reads, in the order of Columns.
func (q Question) Needs() []string {
	switch q {
	case Sum:
		return []string{"l_partkey"}
	case FewRows, SomeRows:
		return []string{"l_partkey", "l_extendedprice"}
	case NoRows:
		return []string{"l_quantity", "l_extendedprice"}
	case Group:
		return []string{"l_quantity", "l_shipmode"}
	case Q1:
		return []string{"l_quantity", "l_extendedprice", "l_discount", "l_tax", "l_shipdate",
			"l_returnflag", "l_linestatus"}
	default:
		return []string{"l_quantity", "l_extendedprice", "l_discount", "l_shipdate"}
	}
}

// SQL returns the text of the query: key columns first, then the sums in the order of the answer.
func (q Question) SQL() (text string, keys int) {
	switch q {
	case Sum:
		return "SELECT CAST(sum(l_partkey) AS BIGINT), count(*) FROM lineitem", 0
	case FewRows:
		return fmt.Sprintf("SELECT CAST(sum(l_extendedprice) AS BIGINT), count(*) FROM lineitem WHERE l_partkey < %d",
			FewBelow), 0
	case SomeRows:
		return fmt.Sprintf("SELECT CAST(sum(l_extendedprice) AS BIGINT), count(*) FROM lineitem WHERE l_partkey < %d",
			SomeBelow), 0
	case NoRows:
		return fmt.Sprintf("SELECT CAST(sum(l_extendedprice) AS BIGINT), count(*) FROM lineitem WHERE l_quantity = %d",
			NoQuantity), 0
	case Group:
		return "SELECT l_shipmode, CAST(sum(l_quantity) AS BIGINT), count(*) FROM lineitem GROUP BY l_shipmode", 1
	case Q1:
		return fmt.Sprintf(`SELECT l_returnflag, l_linestatus, CAST(sum(l_quantity) AS BIGINT), count(*), CAST(sum(l_extendedprice) AS BIGINT),
			CAST(sum(l_extendedprice * (100 - l_discount)) AS BIGINT), CAST(sum(l_extendedprice * (100 - l_discount) * (100 + l_tax)) AS BIGINT),
			CAST(sum(l_discount) AS BIGINT) FROM lineitem WHERE l_shipdate <= %d GROUP BY l_returnflag, l_linestatus`, Q1Until), 2
	default:
		return fmt.Sprintf(`SELECT CAST(sum(l_extendedprice * l_discount) AS BIGINT), count(*) FROM lineitem
			WHERE l_shipdate >= %d AND l_shipdate < %d AND l_discount BETWEEN %d AND %d AND l_quantity < %d`, Q6From, Q6Until, Q6Least, Q6Most, Q6Below), 0
	}
}

// AddItem adds one row to the answer of q.
func (a *Answer) AddItem(q Question, it *inputs.Item) {
	add := func(g *[8]int64, v int64) { g[0], g[1] = g[0]+v, g[1]+1 }
	switch {
	case q == Sum:
		add(a.Group(""), it.PartKey)
	case q == FewRows && it.PartKey < FewBelow, q == SomeRows && it.PartKey < SomeBelow,
		q == NoRows && it.Quantity == NoQuantity:
		add(a.Group(""), it.ExtendedPrice)
	case q == Group:
		add(a.Group(it.ShipMode), it.Quantity)
	case q == Q1 && it.ShipDate <= Q1Until:
		q1(a.Group(it.ReturnFlag+it.LineStatus), it.Quantity, it.ExtendedPrice, it.Discount, it.Tax)
	case q == Q6 && it.ShipDate >= Q6From && it.ShipDate < Q6Until && it.Discount >= Q6Least &&
		it.Discount <= Q6Most && it.Quantity < Q6Below:
		add(a.Group(""), it.ExtendedPrice*it.Discount)
	}
}

// q1 adds one row to a group of Q1.
func q1(g *[8]int64, quantity, price, discount, tax int64) {
	g[0] += quantity
	g[1]++
	g[2] += price
	g[3] += price * (100 - discount)
	g[4] += price * (100 - discount) * (100 + tax)
	g[5] += discount
}

// AddColumns adds the first n rows of c to the answer of q. It is the arithmetic for peers that
// return columns. The rows may include some that the query excludes.
func (a *Answer) AddColumns(q Question, c *Columns, n int) {
	switch q {
	case Sum:
		g := a.Group("")
		g[0] += sum(c.PartKey[:n])
		g[1] += int64(n)
	case FewRows, SomeRows, NoRows:
		a.filtered(q, c, n)
	case Group:
		a.grouped(c, n)
	case Q1:
		a.pricing(c, n)
	case Q6:
		g := a.Group("")
		for i := range n {
			if d := c.ShipDate[i]; d >= Q6From && d < Q6Until && c.Discount[i] >= Q6Least &&
				c.Discount[i] <= Q6Most && c.Quantity[i] < Q6Below {
				g[0] += c.Price[i] * c.Discount[i]
				g[1]++
			}
		}
	}
}

// sum adds values in four independent chains.
func sum(values []int64) int64 {
	var s0, s1, s2, s3 int64
	for ; len(values) >= 4; values = values[4:] {
		s0, s1, s2, s3 = s0+values[0], s1+values[1], s2+values[2], s3+values[3]
	}
	for _, v := range values {
		s0 += v
	}
	return s0 + s1 + s2 + s3
}

func (a *Answer) filtered(q Question, c *Columns, n int) {
	g := a.Group("")
	if q == NoRows {
		for i, v := range c.Quantity[:n] {
			if v == NoQuantity {
				g[0] += c.Price[i]
				g[1]++
			}
		}
		return
	}
	below := int64(FewBelow)
	if q == SomeRows {
		below = SomeBelow
	}
	for i, v := range c.PartKey[:n] {
		if v < below {
			g[0] += c.Price[i]
			g[1]++
		}
	}
}

func (a *Answer) grouped(c *Columns, n int) {
	for i := range n {
		g := a.groups[string(c.Mode[i])]
		if g == nil {
			g = a.Group(string(c.Mode[i]))
		}
		g[0] += c.Quantity[i]
		g[1]++
	}
}

// pricing computes Q1. Its keys are two strings of one byte each. A table of 256 × 256 would be
// fastest, but a program would use a map; pricing uses a map and remembers the groups found by
// their two bytes.
func (a *Answer) pricing(c *Columns, n int) {
	var seen [8]struct {
		key [2]byte
		g   *[8]int64
	}
	known := 0
	for i := range n {
		if c.ShipDate[i] > Q1Until {
			continue
		}
		key := [2]byte{c.Flag[i][0], c.Status[i][0]}
		var g *[8]int64
		for k := range known {
			if seen[k].key == key {
				g = seen[k].g
				break
			}
		}
		if g == nil {
			g = a.Group(string(key[:]))
			if known < len(seen) {
				seen[known].key, seen[known].g = key, g
				known++
			}
		}
		q1(g, c.Quantity[i], c.Price[i], c.Discount[i], c.Tax[i])
	}
}
