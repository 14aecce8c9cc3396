package isolation

import (
	"strings"
	"testing"

	"github.com/oribi-db/oribi/internal/must"
	"github.com/oribi-db/oribi/internal/seedtest"
)

// Transactions 0, 1 and 2 of these histories are concurrent; each case has one anomaly.
func TestCheckFindsAnomalies(t *testing.T) {
	all := func(elements ...element) setRead {
		r := setRead{set: 1, to: 100, seen: map[element]bool{}}
		for _, e := range elements {
			r.seen[e] = true
		}
		return r
	}
	list := func(elements ...element) listRead { return listRead{1, elements} }
	adds := func(e element) map[element]int { return map[element]int{e: 1} }
	for _, c := range []struct {
		name string
		txs  []transaction
		last transaction
		want string // in the error; empty without an anomaly
	}{
		{"serial", []transaction{
			{end: 10, append: adds(1), lists: []listRead{list()}},
			{end: 11, append: adds(2), lists: []listRead{list(1)}, sets: []setRead{all()}},
			{begin: 12, end: 13, adds: adds(3), sets: []setRead{all()}},
		}, transaction{lists: []listRead{list(1, 2)}, sets: []setRead{all(3)}}, ""},
		{"lost update", []transaction{
			{end: 10, append: adds(1), lists: []listRead{list()}},
			{end: 11, append: adds(2), lists: []listRead{list()}},
		}, transaction{lists: []listRead{list(2)}}, "lost"},
		{"update of an old version", []transaction{
			{end: 10, append: adds(1), lists: []listRead{list()}},
			{end: 11, append: adds(2), lists: []listRead{list()}},
		}, transaction{lists: []listRead{list(1, 2)}}, "cycle"},
		{"write skew by ranges", []transaction{
			{end: 10, adds: adds(1), sets: []setRead{all()}},
			{end: 11, adds: adds(2), sets: []setRead{all()}},
		}, transaction{sets: []setRead{all(1, 2)}}, "cycle"},
		{"write skew by a deleted row", []transaction{
			{end: 5, adds: adds(1)},
			{begin: 6, end: 10, gone: []element{1}, append: adds(3),
				lists: []listRead{list()}, sets: []setRead{all(1)}},
			{begin: 6, end: 11, append: adds(4), lists: []listRead{list(3)}, sets: []setRead{all(1)}},
		}, transaction{lists: []listRead{list(3, 4)}, sets: []setRead{all()}}, "cycle"},
		{"phantom", []transaction{
			{end: 10, adds: adds(1), append: adds(2), lists: []listRead{list()}},
			{end: 11, lists: []listRead{list(2)}, sets: []setRead{all()}},
		}, transaction{lists: []listRead{list(2)}, sets: []setRead{all(1)}}, "cycle"},
		{"read of an older state", []transaction{
			{end: 10, adds: adds(1)},
			{begin: 12, end: 13, sets: []setRead{all()}},
		}, transaction{sets: []setRead{all(1)}}, "cycle"},
		{"read of a transaction that was not committed", []transaction{
			{end: 10, sets: []setRead{all(7)}},
		}, transaction{sets: []setRead{all()}}, "no transaction"},
		{"two versions of one list", []transaction{
			{end: 10, append: adds(1), lists: []listRead{list()}},
			{end: 11, append: adds(2), lists: []listRead{list(1)}},
			{end: 12, lists: []listRead{list(2)}},
		}, transaction{lists: []listRead{list(1, 2)}}, "read as"},
		{"row that was added and lost", []transaction{{end: 10, adds: adds(1)}},
			transaction{sets: []setRead{all()}}, "cycle"},
		{"row added next to a delete of its range", []transaction{
			{end: 10, adds: map[element]int{1: 0}},
			{end: 12, ranges: []setRange{{0, 16}}},
		}, transaction{sets: []setRead{{to: 100, seen: map[element]bool{1: true}}}}, ""},
		{"read of a row after a delete of its range", []transaction{
			{end: 10, adds: map[element]int{1: 0}},
			{begin: 11, end: 12, ranges: []setRange{{0, 16}}},
			{begin: 13, end: 14, sets: []setRead{{to: 100, seen: map[element]bool{1: true}}}},
		}, transaction{sets: []setRead{{to: 100, seen: map[element]bool{}}}}, "cycle"},
		{"row that a delete of its range has missed", []transaction{
			{end: 10, adds: map[element]int{1: 0}},
			{begin: 11, end: 12, ranges: []setRange{{0, 16}}},
		}, transaction{sets: []setRead{{to: 100, seen: map[element]bool{1: true}}}}, "cycle"},
		{"row deleted twice", []transaction{
			{end: 10, adds: adds(1)},
			{end: 11, gone: []element{1}, sets: []setRead{all(1)}},
			{end: 12, gone: []element{1}, sets: []setRead{all(1)}},
		}, transaction{sets: []setRead{all()}}, "twice"},
	} {
		c.last.begin, c.last.end = 100, 101
		switch err := check(c.txs, c.last); {
		case c.want == "" && err != nil:
			t.Errorf("%s: %v", c.name, err)
		case c.want != "" && (err == nil || !strings.Contains(err.Error(), c.want)):
			t.Errorf("%s: %v, want %q", c.name, err, c.want)
		}
	}
}

func TestTransactionsAreSerializable(t *testing.T) {
	seed := seedtest.Seed(t)
	var total Counts
	for i := range uint64(seedtest.Needed(8, 3)) {
		c, err := Run(seed+i, 400)
		must.Do(t, err, "seed", seed+i)
		total.Transactions, total.Conflicts, total.Reads = total.Transactions+c.Transactions,
			total.Conflicts+c.Conflicts, total.Reads+c.Reads
	}
	t.Logf("%+v", total)
	if total.Conflicts == 0 || total.Reads == 0 {
		t.Errorf("%d conflicts, %d reads", total.Conflicts, total.Reads)
	}
}
