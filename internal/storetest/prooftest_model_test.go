package storetest

import (
	"bytes"
	"testing"

	"github.com/oribi-db/oribi"
	"github.com/oribi-db/oribi/internal/must"
	"github.com/oribi-db/oribi/internal/prooftest/model"
	"github.com/oribi-db/oribi/internal/prooftest/script"
	"github.com/oribi-db/oribi/mvcc"
	"github.com/oribi-db/oribi/schema"
)

// modelOfTwoColumns returns a model with one table: an int8 key k and two int8 columns, v without a
// default and d with the default 9. None is nullable.
func modelOfTwoColumns(t *testing.T) *model.Model {
	s := must.Get(schema.New([]schema.Column{{Name: "k", Type: schema.Int8}, {Name: "v", Type: schema.Int8},
		{Name: "d", Type: schema.Int8, Default: []byte{9}}}, 1))(t)
	m := model.NewModel()
	m.Create("t", s)
	return m
}

func scriptOp(ask oribi.Op, cells ...byte) script.Op {
	o := script.Op{Ask: ask, Table: "t", Cells: make([][]byte, 3), Set: make([]bool, 3)}
	for i, c := range cells {
		o.Cells[i], o.Set[i] = []byte{c}, true
	}
	return o
}

// TestModelMatchesTheResultTable runs each operation on an existing and on an absent row, and
// compares the results with the result table of the write path.
func TestModelMatchesTheResultTable(t *testing.T) {
	for _, c := range []struct {
		op      script.Op
		live    bool
		want    []byte // v and d after the operation; nil = no row
		refused bool
		cause   error
	}{
		{scriptOp(oribi.OpInsert, 1, 5), false, []byte{5, 9}, false, nil},
		{scriptOp(oribi.OpInsert, 1, 5), true, nil, true, oribi.ErrKeyExists},
		{scriptOp(oribi.OpInsertIgnore, 1, 5), true, []byte{2, 3}, false, nil},
		{scriptOp(oribi.OpInsert, 1), false, nil, true, nil},
		{scriptOp(oribi.OpUpsert, 1, 5), false, []byte{5, 9}, false, nil},
		{scriptOp(oribi.OpUpsert, 1, 5), true, []byte{5, 3}, false, nil},
		{scriptOp(oribi.OpUpsert, 1), true, []byte{2, 3}, false, nil},
		{scriptOp(oribi.OpUpsert, 1), false, nil, true, nil},
		{scriptOp(oribi.OpUpsertIgnore, 1, 5), true, []byte{5, 3}, false, nil},
		{scriptOp(oribi.OpUpdate, 1, 5), true, []byte{5, 3}, false, nil},
		{scriptOp(oribi.OpUpdate, 1, 5), false, nil, true, oribi.ErrNotFound},
		{scriptOp(oribi.OpUpdate, 1), true, nil, true, nil},
		{scriptOp(oribi.OpUpdateIgnore, 1, 5), false, nil, false, nil},
		{scriptOp(oribi.OpDelete, 1), true, nil, false, nil},
		{scriptOp(oribi.OpDelete, 1), false, nil, true, oribi.ErrNotFound},
		{scriptOp(oribi.OpDelete, 1, 5), true, nil, true, nil},
		{scriptOp(oribi.OpDeleteIgnore, 1), false, nil, false, nil},
	} {
		m := modelOfTwoColumns(t)
		if c.live {
			m.Commit(m.Resolve([]script.Op{scriptOp(oribi.OpInsert, 1, 2, 3)}, false), 1)
		}
		o := m.Resolve([]script.Op{c.op}, false)
		must.Equal(t, o.Refused == 0, c.refused, c.op, "live", c.live, "refused", o.Refused)
		must.Fail(t, o.Cause, c.cause, c.op, "live", c.live, "refused", o.Refused)
		if c.refused {
			continue
		}
		m.Commit(o, 2)
		row := m.Tables["t"].Row([][]byte{{1}}, mvcc.Max)
		if got := bytes.Join(row, nil); row == nil != (c.want == nil) || row != nil && !bytes.Equal(got[1:], c.want) {
			t.Errorf("%v, live %v: row %v, want %v", c.op, c.live, row, c.want)
		}
	}
}

func TestModelKeepsVersionsAndTruncatesCommits(t *testing.T) {
	m := modelOfTwoColumns(t)
	m.Commit(m.Resolve([]script.Op{scriptOp(oribi.OpInsert, 1, 2)}, false), 10)
	m.Commit(m.Resolve([]script.Op{scriptOp(oribi.OpDelete, 1), scriptOp(oribi.OpInsert, 1, 3),
		scriptOp(oribi.OpUpdate, 1, 4)}, false), 20)
	m.Commit(m.Resolve([]script.Op{scriptOp(oribi.OpDelete, 1)}, false), 30)
	v := func(ts mvcc.Timestamp) int {
		if row := m.Tables["t"].Row([][]byte{{1}}, ts); row != nil {
			return int(row[1][0])
		}
		return -1
	}
	for ts, want := range map[mvcc.Timestamp]int{9: -1, 10: 2, 19: 2, 20: 4, 29: 4, 30: -1} {
		must.Equal(t, v(ts), want, "at", ts)
	}
	c := m.Clone()
	c.Truncate(1)
	if got := c.Tables["t"].Row([][]byte{{1}}, 50); got == nil || got[1][0] != 2 {
		t.Errorf("row after Truncate(1): %v, want v = 2", got)
	}
	must.Equal(t, v(50), -1, "truncating the clone changed the original")
}
