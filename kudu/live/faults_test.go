package live

import (
	"context"
	"errors"
	"fmt"
	"testing"

	"github.com/oribi-db/oribi"
	"github.com/oribi-db/oribi/internal/must"
	"github.com/oribi-db/oribi/internal/seedtest"
	"github.com/oribi-db/oribi/schema"
)

// once brings the copy of a table up to date, and compares.
func once(t *testing.T, s *oribi.Store, table *oribi.Table, to Target) {
	t.Helper()
	must.Do(t, Sync(t.Context(), s, table, to, &Options{Once: true, Settle: 1}))
	mustAgree(t, table, to.Cluster, CompareOptions{})
}

// A copy that was stopped before its end goes on with the state that it has begun with. What has changed
// since is sent after that, also for a call that ends then.
func TestInterruptedCopyCatchesUp(t *testing.T) {
	_, c := connect(t, 1)
	r := seedtest.Rand(t)
	s := openStore(t)
	table := someTable(t, s)
	churn(t, r, s, table, 2000)
	to := Target{Cluster: c, Replicas: 1}
	ctx, cancel := context.WithCancel(t.Context())
	must.Do(t, Sync(ctx, s, table, to, &Options{Rows: 100, Progress: func(Status) { cancel() }}))
	churn(t, r, s, table, 500)
	once(t, s, table, to)
}

// Rows that were sent after the position and are gone again are in no list of changes from the position
// on. A copy that was stopped there removes them.
func TestRowsAfterThePositionAreRemoved(t *testing.T) {
	_, c := connect(t, 1)
	s := openStore(t)
	table := someTable(t, s)
	to := Target{Cluster: c, Replicas: 1}
	once(t, s, table, to)
	row := oribi.Row{"host": "a", "at": int64(1), "ok": true}
	b := s.NewBatch()
	b.Upsert(table, row)
	must.Get(b.Commit(t.Context()))(t)

	w := must.Get(newWriter(t.Context(), s, table, to, nil))(t)
	must.Do(t, w.opened())
	for d, err := range table.Diff(t.Context(), w.pos.Done, s.Visible()) { // and ctx ends
		must.Do(t, err)
		must.Do(t, w.change(t.Context(), &d, s.Visible()))
	}
	must.Do(t, w.end(t.Context()))
	w.close()

	b = s.NewBatch()
	b.Delete(table, oribi.Row{"host": "a", "at": int64(1)})
	must.Get(b.Commit(t.Context()))(t)
	once(t, s, table, to)
}

// Columns swap their names, are dropped and added under one name, and get defaults after they were added,
// between two calls.
func TestColumnsChangeBetweenCalls(t *testing.T) {
	_, c := connect(t, 1)
	r := seedtest.Rand(t)
	s := openStore(t)
	columns := must.Get(schema.New([]schema.Column{
		{Name: "k", Type: schema.Int64, Key: true},
		{Name: "a", Type: schema.String, Nullable: true}, {Name: "b", Type: schema.String, Nullable: true}}))(t)
	table := must.Get(s.CreateTable("metrics", columns))(t)
	to := Target{Cluster: c, Replicas: 1}
	write := func() {
		t.Helper()
		b := s.NewBatch()
		now := table.Schema().Columns
		for range 50 {
			row := oribi.Row{"k": r.Int64N(100)}
			for i := range now[1:] {
				row[now[1+i].Name] = fmt.Sprint("v", r.IntN(9))
			}
			b.Upsert(table, row)
		}
		must.Get(b.Commit(t.Context()))(t)
	}
	note := schema.Column{Name: "c", Type: schema.String, Nullable: true}
	for i, steps := range [][]oribi.Alteration{
		{},
		{oribi.RenameColumn("a", "x"), oribi.RenameColumn("b", "a"), oribi.RenameColumn("x", "b")},
		{oribi.DropColumn("a"), oribi.AddColumn(schema.Column{Name: "a", Type: schema.String, Nullable: true})},
		{oribi.DropColumn("a"), oribi.RenameColumn("b", "a")},
		{oribi.AddColumn(note, "old")},
		{oribi.SetDefault("c", "other"), oribi.AddColumn(schema.Column{Name: "d", Type: schema.String, Nullable: true}),
			oribi.SetDefault("d", "new")},
	} {
		write()
		if len(steps) > 0 {
			must.Do(t, table.Alter(t.Context(), steps...), "alteration", i)
		}
		if i%2 == 0 {
			write()
		}
		once(t, s, table, to)
		write()
		once(t, s, table, to)
	}
}

// A table of the store that was not pulled is left alone, also if one of its name was pulled and dropped,
// or was to be pulled.
func TestPullLeavesOtherTablesAlone(t *testing.T) {
	_, c := connect(t, 1)
	r := seedtest.Rand(t)
	from, into := openStore(t), openStore(t)
	table := someTable(t, from)
	churn(t, r, from, table, 100)
	must.Get(Push(t.Context(), from, table, Target{Cluster: c, Replicas: 1}, nil))(t)
	must.Get(Pull(t.Context(), c, "metrics", into, "", nil))(t)
	must.Do(t, into.DropTable("metrics"))
	must.Get(Pull(t.Context(), c, "metrics", into, "", nil))(t)
	mustAgree(t, must.Get(into.Table("metrics"))(t), c, CompareOptions{})

	must.Do(t, into.DropTable("metrics"))
	own := someTable(t, into)
	churn(t, r, into, own, 100)
	rows := must.Get(own.Count(t.Context()))(t)
	err := must.Err(Pull(t.Context(), c, "metrics", into, "", nil))
	must.Equal(t, errors.Is(err, oribi.ErrExists), true, err)
	err = Follow(t.Context(), c, "metrics", into, "", &PullOptions{Once: true})
	must.Equal(t, errors.Is(err, oribi.ErrExists), true, err)
	must.Equal(t, must.Get(own.Count(t.Context()))(t), rows, "rows")
}

// A reading of several write batches that ends after the first one is repeated as a comparison: rows that
// have come with it and are gone again are in no list of changes.
func TestPartialReadingIsRepaired(t *testing.T) {
	_, c := connect(t, 1)
	r := seedtest.Rand(t)
	from, into := openStore(t), openStore(t)
	table := someTable(t, from)
	to := Target{Cluster: c, Replicas: 1}
	once(t, from, table, to)
	must.Get(Pull(t.Context(), c, "metrics", into, "", nil))(t)
	churn(t, r, from, table, 500)
	once(t, from, table, to)

	o := &PullOptions{Once: true, batchBytes: 2000}
	p := must.Get(newPuller(t.Context(), c, "metrics", into, "", o))(t)
	w := p.writes()
	n := 0
	there := must.Get(c.OpenTable(t.Context(), "metrics"))(t)
	for d, err := range Compare(t.Context(), p.t, there, CompareOptions{}) { // and then the process ends
		must.Do(t, err)
		must.Do(t, w.add(t.Context(), d.There, false))
		n++
	}
	if left := must.Get(p.t.Count(t.Context()))(t); left == 0 || left == int64(n) {
		t.Fatalf("%d of %d rows", left, n)
	}
	must.Get(table.Truncate(t.Context()))(t)
	once(t, from, table, to)
	must.Do(t, Follow(t.Context(), c, "metrics", into, "", o))
	mustAgree(t, p.t, c, CompareOptions{})
}
