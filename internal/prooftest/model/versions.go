package model

import (
	"fmt"
	"slices"

	"github.com/oribi-db/oribi"
	"github.com/oribi-db/oribi/internal/prooftest/script"
	"github.com/oribi-db/oribi/mvcc"
)

// Project returns the row's cells in the given columns, in their order.
func Project(row [][]byte, columns []int) [][]byte {
	out := make([][]byte, len(columns))
	for i, c := range columns {
		out[i] = row[c]
	}
	return out
}

// Versions returns, as text, the result that History must have for a key: the row's versions with
// timestamps in (since, upTo], newest first, and last the row as of since, if it existed then.
// Versions that do not change the given columns are left out.
func (t *Table) Versions(key [][]byte, columns []int, since, upTo mvcc.Timestamp) (out []string) {
	r := t.ByKey[KeyText(key)]
	if r == nil {
		return nil
	}
	text := func(ts mvcc.Timestamp) string {
		if cells := r.At(ts); cells != nil {
			return "row " + script.CellsText(Project(cells, columns), nil, " ")
		}
		return ""
	}
	before := text(since)
	if before != "" {
		out = append(out, "0 base "+before)
	}
	times := r.expiries()
	for _, v := range r.Versions {
		times = append(times, v.TS)
	}
	slices.Sort(times)
	upTo = t.time(upTo)
	for _, ts := range times {
		if ts <= since || ts > upTo {
			continue
		}
		if now := text(ts); now != before {
			out = append(out, fmt.Sprintf("%d %v %s", uint64(ts), kindOf(before != "", now != ""), now))
			before = now
		}
	}
	slices.Reverse(out)
	return out
}

func kindOf(before, after bool) oribi.ChangeKind {
	switch {
	case !before:
		return oribi.Inserted
	case !after:
		return oribi.Deleted
	}
	return oribi.Updated
}

// Differences returns, as text, the result that Diff must have: the rows within the key bounds of
// from that differ in the given columns between the timestamps of from and to.
func (t *Table) Differences(columns []int, from, to *script.Read) (out []string) {
	text := func(cells [][]byte) string {
		if cells == nil {
			return script.CellsText(nil, nil, " ")
		}
		return script.CellsText(Project(cells, columns), nil, " ")
	}
	for _, row := range t.Order {
		if from.From != nil && CompareKeys(t.Schema, row.Key, from.From) < 0 ||
			from.To != nil && CompareKeys(t.Schema, row.Key, from.To) >= 0 {
			continue
		}
		a, b := row.At(from.At), row.At(to.At)
		if (a == nil) != (b == nil) || text(a) != text(b) {
			out = append(out, fmt.Sprintf("%v %s: %s -> %s", kindOf(a != nil, b != nil),
				script.CellsText(row.Key, nil, " "), text(a), text(b)))
		}
	}
	return out
}
