package storetest

import (
	"context"
	"errors"
	"fmt"
	"iter"
	"math/rand/v2"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/oribi-db/oribi"
	"github.com/oribi-db/oribi/batch"
	"github.com/oribi-db/oribi/internal/must"
	"github.com/oribi-db/oribi/mvcc"
	"github.com/oribi-db/oribi/schema"
	"github.com/oribi-db/oribi/vfs"
)

// personVectors returns the vectors of rows with the keys from, from+2, from+4, …
func personVectors(from int64, rows []person) []*batch.Vector {
	keys, numbers := batch.NewVector(schema.Int64, len(rows)), batch.NewVector(schema.Int64, len(rows))
	emails, places := &batch.Vector{Type: schema.String}, &batch.Vector{Type: schema.String}
	for i, r := range rows {
		batch.Values[int64](keys)[i], batch.Values[int64](numbers)[i] = from+2*int64(i), r.v
		var email []byte
		if r.email != "" {
			email = []byte(r.email)
		}
		emails.AppendCell(email)
		places.AppendCell([]byte(r.place))
	}
	return []*batch.Vector{keys, emails, places, numbers}
}

// personSteps yields the rows in steps of 1,000, and calls between before each of them.
func personSteps(from int64, rows []person, between func(step int)) iter.Seq2[[]*batch.Vector, error] {
	return func(yield func([]*batch.Vector, error) bool) {
		for i := 0; i < len(rows); i += 1000 {
			if between != nil {
				between(i / 1000)
			}
			if !yield(personVectors(from+2*int64(i), rows[i:min(len(rows), i+1000)]), nil) {
				return
			}
		}
	}
}

// insert inserts a row with an email and returns the timestamp.
func (p *people) insert(k int64, email string) mvcc.Timestamp {
	b := p.store.NewBatch()
	b.Insert(p.table, oribi.Row{"k": k, "email": orNull(email), "place": "", "v": 0})
	return must.Get(b.Commit(context.Background(), oribi.NoSync))(p.t)
}

// strangers returns n people with emails in random order, of which every tenth has none.
func strangers(rng *rand.Rand, n int) []person {
	rows := make([]person, n)
	for i, j := range rng.Perm(n) {
		rows[i] = person{place: fmt.Sprint("place ", j%7), v: int64(j % 5)}
		if j%10 > 0 {
			rows[i].email = fmt.Sprint(j, "@", n)
		}
	}
	return rows
}

// An ingest adds the entries of its rows to the indexes, in several runs, at the timestamp of the rows.
func TestIngestIntoIndexes(t *testing.T) {
	notWithRace(t)
	ctx := context.Background()
	p := newPeople(t)
	defer func() { p.store.Close() }()
	must.Do(t, p.store.Close())
	p.memory = 16 << 20
	p.open()
	for range 20 {
		p.commit()
	}
	before := p.insert(50, "")
	p.rows[50] = person{}
	rows := strangers(p.rng, 30_000)
	ts, n, err := p.table.Ingest(ctx, personSteps(101, rows, nil))
	must.Do(t, err)
	must.Equal(t, n, int64(len(rows)))
	check := func() {
		t.Helper()
		for range 200 {
			i := p.rng.IntN(len(rows))
			r := rows[i]
			if r.email == "" {
				continue
			}
			want := oribi.Row{"k": 101 + 2*int64(i), "email": r.email, "place": r.place, "v": r.v}
			must.Equal(t, must.Get(p.table.GetBy(ctx, "by_email", r.email, oribi.AsOf(ts)))(t), want)
			must.Fail(t, must.Err(p.table.GetBy(ctx, "by_email", r.email, oribi.AsOf(before))), oribi.ErrNotFound)
		}
		p.check(p.rows)
		for range 30 {
			p.compareScans()
			p.compareScans(oribi.AsOf(before))
		}
		p.verify()
	}
	check()
	must.Do(t, p.store.Close()) // the log has nothing of the rows
	p.open()
	check()
	for range 50 {
		p.commit()
	}
	must.Do(t, p.table.Compact(ctx))
	check()
}

// An ingest is refused if two of its rows, or one of them and another row, have the same values in a unique
// index: in memory, in files, in one run or two, or from a writer next to it.
func TestIngestIntoUniqueIndexes(t *testing.T) {
	notWithRace(t)
	ctx := context.Background()
	const n = 25_000
	for name, c := range map[string]struct {
		change  func(p *people, rows []person)
		between func(p *people, rows []person, step int)
		row     int // that is refused; below 0: not known
		key     int64
		other   string
	}{
		"in one run": {change: func(_ *people, rows []person) { rows[5].email, rows[9].email = "x", "x" },
			row: 9, key: 119, other: "111"},
		"in two runs": {change: func(_ *people, rows []person) { rows[5].email, rows[n-1].email = "x", "x" },
			row: n - 1, key: 101 + 2*(n-1), other: "111"},
		"in memory": {change: func(p *people, rows []person) {
			p.insert(4, "x")
			rows[n-2].email = "x"
		}, row: n - 2, key: 101 + 2*(n-2), other: "4"},
		"in files": {change: func(p *people, rows []person) {
			p.insert(4, "x")
			must.Do(p.t, p.table.Flush(ctx))
			rows[7].email = "x"
		}, row: 7, key: 115, other: "4"},
		"of a writer": {between: func(p *people, rows []person, step int) {
			if step == n/1000-1 {
				p.insert(4, "x")
			}
		}, change: func(_ *people, rows []person) { rows[3].email = "x" }, row: 3, key: 107, other: "4"},
		"of a flushed writer": {between: func(p *people, rows []person, step int) {
			if step == n/1000-1 {
				p.insert(4, "x")
				must.Do(p.t, p.table.Flush(ctx))
			}
		}, change: func(_ *people, rows []person) { rows[3].email = "x" }, row: 3, key: 107, other: "4"},
	} {
		t.Run(name, func(t *testing.T) {
			p := newPeople(t)
			defer func() { p.store.Close() }()
			must.Do(t, p.store.Close())
			p.memory = 16 << 20
			p.open()
			rows := strangers(p.rng, n)
			c.change(p, rows)
			_, _, err := p.table.Ingest(ctx, personSteps(101, rows, func(step int) {
				if c.between != nil {
					c.between(p, rows, step)
				}
			}))
			must.Fail(t, err, oribi.ErrNotUnique)
			if e, ok := errors.AsType[*oribi.RowError](err); !ok || e.Row != c.row || e.Key != fmt.Sprint(c.key) {
				t.Errorf("%v, want row %d", err, c.row)
			}
			if e, ok := errors.AsType[*oribi.NotUnique](err); !ok || e.Other != c.other || e.Index != "by_email" {
				t.Errorf("%v, want it to name row %s", err, c.other)
			}
			if got := must.Get(p.table.Count(ctx))(t); got > 1 {
				t.Errorf("%d rows", got)
			}
			p.verify()
			rows[3].email, rows[5].email, rows[7].email, rows[n-2].email = "", "", "", ""
			must.Do(t, must.Err2(p.table.Ingest(ctx, personSteps(101, rows, nil))))
			p.verify()
		})
	}
}

// An ingest is refused if an index was added or dropped since it began. Its rows have entries in an index
// that is being built.
func TestIngestNextToAlteredIndexes(t *testing.T) {
	ctx := context.Background()
	p := newPeople(t)
	defer func() { p.store.Close() }()
	rows := strangers(p.rng, 3000)
	for _, change := range []oribi.Alteration{oribi.DropIndex("by_place"), oribi.AddIndex("by_place", "place", "v"),
		oribi.AddUnique("by_k", "k")} {
		must.Fail(t, must.Err2(p.table.Ingest(ctx, personSteps(101, rows, func(step int) {
			if step == 1 {
				must.Do(t, p.table.Alter(ctx, change))
			}
		}))), oribi.ErrConflict)
		must.Equal(t, must.Get(p.table.Count(ctx))(t), int64(0))
		p.verify()
	}
	must.Do(t, must.Err2(p.table.Ingest(ctx, personSteps(101, rows, nil))))
	p.verify()
}

// Ingests, writers, flushes, and compactions run side by side. What is committed is unique.
func TestIngestNextToUniqueWriters(t *testing.T) {
	ctx := context.Background()
	store := must.Get(oribi.Open("/people", &oribi.Options{FS: vfs.NewMem(), RowSetBytes: 1 << 14}))(t)
	defer store.Close()
	table := tableOf(t, store, "people", peopleColumns, oribi.Unique("by_email", "email"), oribi.Index("by_place", "place"))
	var wg sync.WaitGroup
	var stop atomic.Bool
	for i := range 3 {
		rng := rand.New(rand.NewPCG(uint64(i), 7))
		wg.Go(func() {
			for !stop.Load() {
				k, email := 2*rng.IntN(400), fmt.Sprint(rng.IntN(4000), "@")
				b := store.NewBatch()
				b.Upsert(table, oribi.Row{"k": k, "email": email, "place": email[:1], "v": 1})
				if _, err := b.Commit(ctx, oribi.NoSync); err != nil {
					must.Fail(t, err, oribi.ErrNotUnique)
				}
				if rng.IntN(100) == 0 {
					must.Do(t, table.Flush(ctx))
				}
			}
		})
	}
	rng, added, refused := rand.New(rand.NewPCG(9, 7)), 0, 0
	for i := 0; i < 2000 && (added < 5 || refused < 5 || i < 30); i++ {
		rows := make([]person, 1+rng.IntN(60))
		for k, e := range rng.Perm(4000)[:len(rows)] {
			rows[k] = person{email: fmt.Sprint(e, "@"), place: fmt.Sprint(e)[:1]}
		}
		_, _, err := table.Ingest(ctx, personSteps(1001+int64(i)*1000, rows, nil))
		switch {
		case err == nil:
			added++
			must.Do(t, must.Err(table.DeleteRange(ctx, 1001, nil)))
		default:
			must.Fail(t, err, oribi.ErrNotUnique)
			refused++
		}
	}
	stop.Store(true)
	wg.Wait()
	must.Do(t, store.VerifyDeep(ctx, func(f oribi.Finding) { t.Errorf("%+v", f) }))
	if added < 5 || refused < 5 {
		t.Errorf("%d ingests added their rows, %d were refused", added, refused)
	}
	emails := map[any]bool{}
	for row := range must.All(t, table.Scan(ctx).Rows()) {
		if e := row["email"]; emails[e] {
			t.Errorf("%v twice", e)
		} else {
			emails[e] = true
		}
	}
}
