package expiry

import (
	"encoding/binary"
	"math"
	"math/big"
	"testing"

	"github.com/oribi-db/oribi/internal/must"
	"github.com/oribi-db/oribi/internal/seedtest"
	"github.com/oribi-db/oribi/mvcc"
	"github.com/oribi-db/oribi/schema"
)

func cellOf(us int64) []byte { return binary.LittleEndian.AppendUint64(nil, uint64(us)) }

// TestExpiryHasNoOverflow compares the three forms of the rule, for one row, for a read, and as a
// filter, with a computation in integers of any size.
func TestExpiryHasNoOverflow(t *testing.T) {
	rng := seedtest.Rand(t)
	edges := []int64{math.MinInt64, -1, 0, 1, 1<<52 - 1, 1 << 52, math.MaxInt64}
	number := func() int64 {
		if n := edges[rng.IntN(len(edges))]; rng.IntN(2) == 0 {
			return n + rng.Int64N(5) - 2
		}
		return rng.Int64N(1 << 53)
	}
	for range 20000 {
		c, age, ts := number(), number()&math.MaxInt64, mvcc.Timestamp(rng.Uint64())
		rule := Rule{Column: 3, Age: age}
		sum := new(big.Int).Add(big.NewInt(c), big.NewInt(age))
		want := sum.Cmp(big.NewInt(ts.Micros())) <= 0
		test, ok := Rules{{Rule: rule}}.At(ts)
		must.Equal(t, ok, true, "no rule")
		must.Equal(t, test.Expired(cellOf(c)), want, c, age, "at", ts)
		if got := rule.Expiry(cellOf(c)) <= ts; got != want && ts <= mvcc.Last {
			t.Fatalf("%d + %d at %v: expires at %v, want %v", c, age, ts, rule.Expiry(cellOf(c)), want)
		}
		for _, nullable := range []bool{false, true} {
			column := &schema.Column{ID: 3, Type: schema.Timestamp, Nullable: nullable}
			alive, gone := test.Alive(column), test.Gone(column)
			cell := func(schema.ColumnID) []byte { return cellOf(c) }
			if alive.EvalRow(cell) == want || gone.EvalRow(cell) != want {
				t.Fatalf("%d + %d at %v, nullable %v: the filters differ", c, age, ts, nullable)
			}
		}
	}
	test := Test{Limit: math.MaxInt64}
	alive := test.Alive(&schema.Column{Type: schema.Timestamp, Nullable: true})
	if test.Expired(nil) || !alive.EvalRow(func(schema.ColumnID) []byte { return nil }) ||
		(Rule{}).Expiry(nil) != mvcc.Max {
		t.Error("NULL expires")
	}
}

// TestRulesHaveAHistory looks up the rule in force at each time.
func TestRulesHaveAHistory(t *testing.T) {
	us := func(n uint64) mvcc.Timestamp { return mvcc.Timestamp(n << 12) }
	rules := Rules(nil).After(us(10), &Rule{Column: 1, Age: 5}).StoppedAt(us(20)).After(us(22),
		&Rule{Column: 2}).StoppedAt(us(30)).After(us(32), nil)
	limits := func(rules Rules) (out []int64) {
		for _, at := range []uint64{9, 10, 19, 20, 21, 22, 29, 31, 32, 40} {
			limit := int64(-1)
			if test, ok := rules.At(us(at)); ok {
				limit = 100*int64(test.Column) + test.Limit
			}
			out = append(out, limit)
		}
		return out
	}
	want := []int64{-1, 105, 114, 115, 115, 222, 229, 230, -1, -1}
	for _, floor := range []uint64{0, 10, 15, 20, 25, 32} {
		got := limits(rules.Since(us(floor)))
		for i, at := range []uint64{9, 10, 19, 20, 21, 22, 29, 31, 32, 40} {
			if at >= floor && got[i] != want[i] {
				t.Errorf("since %d, at %d: %d, want %d", floor, at, got[i], want[i])
			}
		}
	}
	if left := rules.Since(us(32)); left != nil {
		t.Errorf("since the end: %v", left)
	}
	if !rules.Names(1) || rules.Since(us(22)).Names(1) || rules.Names(3) {
		t.Error("wrong columns are named")
	}
	if _, ok := rules.Current(); ok {
		t.Error("a rule is in force")
	}
}
