package storetest

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"maps"
	"math/rand/v2"
	"runtime"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/oribi-db/oribi"
	"github.com/oribi-db/oribi/internal/must"
	"github.com/oribi-db/oribi/internal/seedtest"
	"github.com/oribi-db/oribi/mvcc"
	"github.com/oribi-db/oribi/salvage"
	"github.com/oribi-db/oribi/schema"
	"github.com/oribi-db/oribi/vfs"
	"github.com/oribi-db/oribi/vfs/faultfs"
)

// person is a row of a table with indexes; an empty email is NULL.
type person struct {
	email, place string
	v            int64
}

// people is a table with a unique index by email, and an index by place and v, beside a model of it.
type people struct {
	t     *testing.T
	rng   *rand.Rand
	fs    vfs.FS
	store *oribi.Store
	table *oribi.Table

	rows map[int64]person
	past map[mvcc.Timestamp]map[int64]person

	large  bool  // some batches have many operations
	mostly bool  // most operations insert rows
	keys   []int // of operations on different rows
	domain string
	wide   int64 // a factor of the numbers of keys and of emails
	memory int64 // of the store; 0 is the default
	chosen int   // scans that used an index
}

const peopleColumns = "k*:int64 email:string? place:string v:int64"

func newPeople(t *testing.T) *people {
	p := &people{t: t, rng: seedtest.Rand(t), fs: vfs.NewMem(), rows: map[int64]person{},
		past: map[mvcc.Timestamp]map[int64]person{}}
	p.open()
	p.table = tableOf(t, p.store, "people", peopleColumns, oribi.Unique("by_email", "email"),
		oribi.Index("by_place", "place", "v"))
	return p
}

func (p *people) open() {
	p.store = must.Get(oribi.Open("/people", &oribi.Options{FS: p.fs, Manual: true, RowSetBytes: 1 << 12,
		MemoryLimit: p.memory}))(p.t)
	p.table, _ = p.store.Table("people")
}

// owner returns the key of the row with an email, below 0 for none.
func owner(rows map[int64]person, email string) int64 {
	for k, r := range rows {
		if r.email == email && email != "" {
			return k
		}
	}
	return -1
}

func orNull(email string) any {
	if email == "" {
		return nil
	}
	return email
}

// operation adds a random operation to a write batch and applies it to rows. It returns the cause for which
// it is refused, or nil.
func (p *people) operation(b *oribi.Batch, rows map[int64]person) error {
	rng, k := p.rng, p.rng.Int64N(12*p.wide)
	if p.mostly {
		k, p.keys = int64(p.keys[0]), p.keys[1:]
	}
	old, there := rows[k]
	next := person{place: fmt.Sprint("place ", rng.IntN(3)), v: rng.Int64N(4)}
	if rng.IntN(4) > 0 {
		next.email = fmt.Sprint(rng.Int64N(8*p.wide), p.domain)
	}
	kind := rng.IntN(8)
	switch {
	case p.mostly && rng.IntN(10) > 0:
		kind, next.email = rng.IntN(3), fmt.Sprint(k, p.domain)
	case p.mostly:
		kind = 4 + kind%4
	}
	row := oribi.Row{"k": k, "email": orNull(next.email), "place": next.place, "v": next.v}
	set := func(now person) error {
		if o := owner(rows, now.email); o >= 0 && o != k {
			return oribi.ErrNotUnique
		}
		rows[k] = now
		return nil
	}
	switch kind {
	case 0:
		b.Insert(p.table, row)
		if there {
			return oribi.ErrKeyExists
		}
		return set(next)
	case 1:
		b.InsertIgnore(p.table, row)
		if there {
			return nil
		}
		return set(next)
	case 2, 3:
		b.Upsert(p.table, row)
		return set(next)
	case 4:
		b.Update(p.table, oribi.Row{"k": k, "v": next.v})
		if !there {
			return oribi.ErrNotFound
		}
		old.v = next.v
		return set(old)
	case 5:
		b.UpdateIgnore(p.table, oribi.Row{"k": k, "email": orNull(next.email)})
		if !there {
			return nil
		}
		old.email = next.email
		return set(old)
	case 6:
		b.Delete(p.table, oribi.Row{"k": k})
		if !there {
			return oribi.ErrNotFound
		}
		delete(rows, k)
	case 7:
		b.DeleteIgnore(p.table, oribi.Row{"k": k})
		delete(rows, k)
	}
	return nil
}

// commit commits random operations, all or those that are accepted.
func (p *people) commit() {
	t, ctx, b := p.t, context.Background(), p.store.NewBatch()
	rows, partial := maps.Clone(p.rows), p.rng.IntN(3) == 0
	var causes []error
	n := 1 + p.rng.IntN(6)
	if p.wide, p.mostly, p.domain = 1, false, "@example"; p.large && p.rng.IntN(8) == 0 { // entries are found in their order, and by several goroutines
		n, p.wide, partial = 50+p.rng.IntN(300), 1+p.rng.Int64N(20), true
		if p.mostly = p.rng.IntN(2) == 0; p.mostly {
			p.keys, p.domain, p.wide = p.rng.Perm(400), fmt.Sprint("@", p.rng.IntN(1e6)), 50
		}
	}
	for range n {
		causes = append(causes, p.operation(b, rows))
	}
	if partial {
		_, err := b.CommitPartial(ctx, oribi.NoSync)
		must.Do(t, err)
		refused := map[int]error{}
		for _, e := range b.Refused() {
			refused[e.Row] = e
		}
		for i, cause := range causes {
			if !errors.Is(refused[i], cause) || cause == nil && refused[i] != nil {
				t.Fatalf("operation %d: %v, want %v", i, refused[i], cause)
			}
		}
		p.rows = rows
		return
	}
	first := slices.IndexFunc(causes, func(err error) bool { return err != nil })
	ts, err := b.Commit(ctx, oribi.NoSync)
	if first < 0 {
		must.Do(t, err)
		p.rows, p.past[ts] = rows, maps.Clone(rows)
		return
	}
	e, ok := errors.AsType[*oribi.RowError](err)
	if !ok || e.Row != first || !errors.Is(err, causes[first]) {
		t.Fatalf("commit: %v, want operation %d refused: %v", err, first, causes[first])
	}
}

// commitNew commits many rows with keys and emails that no row has, in random order, and deletes some of them.
func (p *people) commitNew() {
	b := p.store.NewBatch()
	for i, k := range p.rng.Perm(300) {
		r := person{email: fmt.Sprint(i*7919%300, "@new"), place: "new"}
		b.Insert(p.table, oribi.Row{"k": 1000 + k, "email": r.email, "place": r.place, "v": r.v})
		p.rows[1000+int64(k)] = r
	}
	ctx := context.Background()
	must.Get(b.Commit(ctx, oribi.NoSync))(p.t)
	p.check(p.rows)
	must.Get(p.table.DeleteWhere(ctx, oribi.Where(oribi.Ge("k", 1000))))(p.t)
	maps.DeleteFunc(p.rows, func(k int64, _ person) bool { return k >= 1000 })
}

// check compares reads by email with rows.
func (p *people) check(rows map[int64]person, opts ...oribi.GetOption) {
	p.t.Helper()
	for i := range 8 {
		email := fmt.Sprint(i, "@example")
		row, err := p.table.GetBy(context.Background(), "by_email", email, opts...)
		want := owner(rows, email)
		switch {
		case want < 0:
			must.Fail(p.t, err, oribi.ErrNotFound, email)
		case err != nil:
			p.t.Fatal(email, err)
		default:
			r := rows[want]
			must.Equal(p.t, row, oribi.Row{"k": want, "email": email, "place": r.place, "v": r.v}, email)
		}
	}
}

// predicate returns a random predicate that an index may serve.
func (p *people) predicate() oribi.Predicate {
	rng := p.rng
	place := func() string { return fmt.Sprint("place ", rng.IntN(4)) }
	email := func() string { return fmt.Sprint(rng.IntN(8), "@example") }
	switch rng.IntN(9) {
	case 0:
		return oribi.Eq("place", place())
	case 1:
		return oribi.And(oribi.Eq("place", place()), oribi.Between("v", rng.IntN(4), rng.IntN(4)))
	case 2:
		return oribi.And(oribi.In("place", place(), place()), oribi.Eq("v", rng.IntN(4)))
	case 3:
		return oribi.IsNull("email")
	case 4:
		return oribi.And(oribi.Gt("email", email()), oribi.Lt("email", email()), oribi.Ne("v", 1))
	case 5:
		return oribi.Or(oribi.Eq("place", place()), oribi.Eq("email", email()))
	case 6:
		return oribi.And(oribi.In("email", email(), email(), email()), oribi.Ge("k", rng.IntN(12)))
	case 7:
		return oribi.And(oribi.Le("place", place()), oribi.Gt("v", 1))
	}
	return oribi.HasPrefix("email", fmt.Sprint(rng.IntN(8)))
}

// compareScans compares scans and counts that may choose an index with those that may not.
func (p *people) compareScans(opts ...oribi.CountOption) {
	p.t.Helper()
	ctx, rng := context.Background(), p.rng
	opts = append(opts, oribi.Where(p.predicate()))
	if rng.IntN(4) == 0 {
		opts = append(opts, oribi.From(rng.IntN(12)), oribi.To(rng.IntN(12)))
	}
	var scans []oribi.ScanOption
	for _, o := range opts {
		scans = append(scans, o)
	}
	if rng.IntN(3) == 0 {
		scans = append(scans, oribi.Desc())
	}
	if rng.IntN(3) == 0 {
		scans = append(scans, oribi.Limit(rng.Int64N(4)))
	}
	if rng.IntN(3) == 0 {
		scans = append(scans, oribi.Columns("v", "k"))
	}
	var e oribi.Explanation
	got := slices.Collect(must.All(p.t, p.table.Scan(ctx, append(scans, oribi.Explain(&e))...).Rows()))
	want := slices.Collect(must.All(p.t, p.table.Scan(ctx, append(scans, oribi.NoIndex())...).Rows()))
	must.Equal(p.t, fmt.Sprint(got), fmt.Sprint(want), e.Index, e.Where)
	if e.Index != "" {
		p.chosen++
	}
	must.Equal(p.t, must.Get(p.table.Count(ctx, opts...))(p.t),
		must.Get(p.table.Count(ctx, append(opts, oribi.NoIndex())...))(p.t), e.Where)
}

func (p *people) verify() {
	p.t.Helper()
	must.Do(p.t, p.store.VerifyDeep(context.Background(), func(f oribi.Finding) { p.t.Errorf("%+v", f) }))
}

// A table with indexes refuses what its model refuses, finds what it finds, now and in the past, and the
// indexes equal the table at each step, across flushes, compactions, and recoveries.
func TestIndexesEqualTheirTable(t *testing.T) {
	ctx := context.Background()
	p := newPeople(t)
	p.large = true
	defer func() { p.store.Close() }()
	steps := seedtest.Rounds(400, 100)
	for range steps {
		switch p.rng.IntN(20) {
		case 0:
			must.Do(t, p.table.Flush(ctx))
		case 1:
			must.Do(t, p.table.Compact(ctx))
		case 2:
			if p.rng.IntN(2) == 0 { // otherwise all changes come from the log
				must.Do(t, p.table.Flush(ctx))
			}
			must.Do(t, p.store.Close())
			p.open()
		case 3:
			must.Get(p.table.DeleteRange(ctx, p.rng.Int64N(12), nil))(t)
			for k := range p.rows {
				if _, err := p.table.Get(ctx, k); err != nil {
					delete(p.rows, k)
				}
			}
		case 4:
			p.commitNew()
		default:
			p.commit()
		}
		p.check(p.rows)
		p.compareScans()
		if p.rng.IntN(10) == 0 {
			p.verify()
		}
	}
	p.verify()
	for _, ts := range slices.SortedFunc(maps.Keys(p.past), func(a, b mvcc.Timestamp) int { return cmp.Compare(a, b) }) {
		p.check(p.past[ts], oribi.AsOf(ts))
		p.compareScans(oribi.AsOf(ts))
	}
	must.Equal(t, len(p.store.Tables()), 1, "tables")
	if p.chosen < steps/4 {
		t.Errorf("%d scans used an index", p.chosen)
	}
}

// Writers of a table with a unique index that want the same values in another order wait for each other
// without an end, and no two rows have the same values.
func TestUniqueIndexWithManyWriters(t *testing.T) {
	ctx := context.Background()
	store := must.Get(oribi.Open("/writers", &oribi.Options{FS: vfs.NewMem(), Manual: true}))(t)
	defer store.Close()
	table := tableOf(t, store, "seats", "k*:int64 a:int64? b:int64?", oribi.Unique("by_a", "a"), oribi.Unique("by_b", "b"))
	seed := seedtest.Rand(t).Uint64()
	var writers sync.WaitGroup
	for w := range 8 {
		writers.Go(func() {
			rng := rand.New(rand.NewPCG(seed, uint64(w)))
			for range 100 {
				b := store.NewBatch()
				for range 1 + rng.IntN(80) {
					b.Upsert(table, oribi.Row{"k": rng.IntN(4000), "a": rng.IntN(3000), "b": rng.IntN(3000)})
				}
				commit := b.Commit
				if rng.IntN(2) == 0 {
					commit = b.CommitPartial
				}
				if _, err := commit(ctx, oribi.NoSync); err != nil && !errors.Is(err, oribi.ErrNotUnique) {
					t.Error(err)
				}
			}
		})
	}
	writers.Wait()
	must.Do(t, store.VerifyDeep(ctx, func(f oribi.Finding) { t.Errorf("%+v", f) }))
	seen := map[any]bool{}
	for row := range must.All(t, table.Scan(ctx).Rows()) {
		for _, c := range []string{"a", "b"} {
			v := fmt.Sprint(c, row[c])
			must.Equal(t, seen[v], false, v)
			seen[v] = true
		}
	}
}

// Entries expire with their rows: another row can have the values of a row that is expired.
func TestIndexEntriesExpire(t *testing.T) {
	ctx := context.Background()
	s := newSessions(t, 0, oribi.Unique("by_v", "v"))
	s.put(1, 10, minute)
	s.put(2, 20, 0)
	key := func(v int) int64 {
		row, err := s.table.GetBy(ctx, "by_v", v)
		if errors.Is(err, oribi.ErrNotFound) {
			return -1
		}
		must.Do(t, err)
		return row["k"].(int64)
	}
	must.Equal(t, key(10), 1)
	b := s.store.NewBatch()
	b.Upsert(s.table, s.row(3, 10, 0))
	must.Fail(t, must.Err(b.Commit(ctx)), oribi.ErrNotUnique)
	s.move(2 * minute)
	must.Equal(t, key(10), -1)
	s.put(3, 10, minute)
	must.Equal(t, key(10), 3)
	s.put(1, 11, 3*minute) // in place of the expired row
	s.put(1, 11, 9*minute) // expires later than before
	s.move(5 * minute)
	must.Equal(t, key(11), 1)
	must.Equal(t, key(10), -1)
	for range 2 {
		must.Do(t, s.store.VerifyDeep(ctx, func(f oribi.Finding) { t.Errorf("%+v", f) }))
		must.Do(t, s.table.Compact(ctx))
	}
	must.Do(t, s.store.Close())
	s.open()
	must.Equal(t, key(11), 1)
	must.Do(t, s.store.VerifyDeep(ctx, func(f oribi.Finding) { t.Errorf("%+v", f) }))
}

// An index that is added while others write equals the table, whether it is built at once or after a kill,
// and an index that rows contradict is refused with both keys and leaves nothing.
func TestIndexIsAddedWhileOthersWrite(t *testing.T) {
	ctx := context.Background()
	p := newPeople(t)
	defer func() { p.store.Close() }()
	for range 300 {
		p.commit()
	}
	p.rows[100], p.rows[101] = person{place: "same"}, person{place: "same"}
	for k := range int64(2) {
		b := p.store.NewBatch()
		b.Insert(p.table, oribi.Row{"k": 100 + k, "place": "same", "v": 0})
		must.Get(b.Commit(ctx))(t)
	}
	err := p.table.Alter(ctx, oribi.AddUnique("by_v", "place"))
	must.Fail(t, err, oribi.ErrNotUnique)
	twice, ok := errors.AsType[*oribi.NotUnique](err)
	must.Equal(t, ok, true)
	must.Equal(t, twice.Index, "by_v")
	must.Equal(t, len(p.table.Indexes()), 2)

	must.Do(t, p.table.Alter(ctx, oribi.DropIndex("by_email")))
	must.Fail(t, must.Err(p.table.GetBy(ctx, "by_email", "0@example")), oribi.ErrSchema)
	done := make(chan error)
	go func() { done <- p.table.Alter(ctx, oribi.AddUnique("by_email", "email")) }()
	for running := true; running; {
		select {
		case err := <-done:
			must.Do(t, err)
			running = false
		default:
			b := p.store.NewBatch()
			rows := maps.Clone(p.rows)
			if p.operation(b, rows) == nil {
				must.Get(b.Commit(ctx, oribi.NoSync))(t)
				p.rows = rows
			}
		}
	}
	p.check(p.rows)
	p.verify()
	for range 50 {
		p.commit()
		p.check(p.rows)
	}
	p.verify()
	for ts, rows := range p.past { // some of these are before the index
		p.check(rows, oribi.AsOf(ts))
	}
	must.Equal(t, p.table.Indexes(), []oribi.IndexInfo{{Name: "by_email", Columns: []string{"email"}, Unique: true},
		{Name: "by_place", Columns: []string{"place", "v"}}})
}

// OpenTable makes the indexes that tags describe.
func TestIndexesOfTags(t *testing.T) {
	type user struct {
		ID      int64   `oribi:"id,key"`
		Email   *string `oribi:"email,unique"`
		City    string  `oribi:"city,index=by_place"`
		Country string  `oribi:"country,index=by_place,dense"`
	}
	ctx := context.Background()
	store := must.Get(oribi.Open("/tags", &oribi.Options{FS: vfs.NewMem()}))(t)
	defer store.Close()
	users := must.Get(oribi.OpenTable[user](store, "users"))(t)
	must.Equal(t, users.Table.Indexes(), []oribi.IndexInfo{{Name: "by_email", Columns: []string{"email"}, Unique: true},
		{Name: "by_place", Columns: []string{"city", "country"}}})
	email := "ada@example.org"
	must.Get(users.Put(ctx, user{1, &email, "London", "UK"}, user{2, nil, "Paris", "FR"}, user{3, nil, "Paris", "FR"}))(t)
	must.Equal(t, must.Get(users.GetBy(ctx, "by_email", email))(t).ID, 1)
	must.Fail(t, must.Err(users.GetBy(ctx, "by_email", nil)), oribi.ErrRow)
	must.Fail(t, must.Err(users.GetBy(ctx, "by_email", "nobody")), oribi.ErrNotFound)
	must.Fail(t, must.Err(users.GetBy(ctx, "by_place", oribi.Key{"Paris", "FR"})), oribi.ErrSchema)
	must.Fail(t, must.Err(users.GetBy(ctx, "by_name", "Ada")), oribi.ErrSchema)
	must.Equal(t, must.Get(users.Table.Count(ctx, oribi.Where(oribi.Eq("city", "Paris"))))(t), 2)
}

// What cannot be an index is refused before anything changes, with the place.
func TestBadIndexes(t *testing.T) {
	store := must.Get(oribi.Open("/bad", &oribi.Options{FS: vfs.NewMem()}))(t)
	defer store.Close()
	columns := must.Get(parseSchema([]string{"k*:int64", "s:string", "d:double", "a:bool"}))(t)
	many := make([]oribi.TableOption, 17)
	for i := range many {
		many[i] = oribi.Index(fmt.Sprint("x", i), "s")
	}
	for _, c := range []struct {
		opts []oribi.TableOption
		text string
	}{
		{[]oribi.TableOption{oribi.Index("x", "z")}, `index "x": column "z"`},
		{[]oribi.TableOption{oribi.Index("x", "d")}, `column "d": a column of type double cannot be indexed`},
		{[]oribi.TableOption{oribi.Unique("x", "a")}, `column "a": a column of type bool`},
		{[]oribi.TableOption{oribi.Index("x", "s", "s")}, `column "s" appears twice`},
		{[]oribi.TableOption{oribi.Index("x")}, "0 columns"},
		{[]oribi.TableOption{oribi.Index("", "s")}, "empty"},
		{[]oribi.TableOption{oribi.Index("x", "s"), oribi.Unique("x", "k")}, `two indexes are named "x"`},
		{many, "more than 16 indexes"},
	} {
		_, err := store.CreateTable("t", columns, c.opts...)
		if !errors.Is(err, oribi.ErrSchema) && !errors.Is(err, oribi.ErrNoColumn) {
			t.Errorf("%v: want ErrSchema or ErrNoColumn", err)
		}
		must.Contain(t, fmt.Sprint(err), c.text)
	}
	must.Equal(t, len(store.Tables()), 0)
	ctx := context.Background()
	table := must.Get(store.CreateTable("t", columns, oribi.Index("by_s", "s")))(t)
	for _, a := range [][]oribi.Alteration{
		{oribi.DropColumn("s")}, {oribi.SetType("k", schema.Column{Type: schema.Int32})}, {oribi.DropIndex("by_k")},
		{oribi.AddIndex("by_d", "d")}, {oribi.AddIndex("by_k", "k"), oribi.SetComment("no")},
	} {
		must.Fail(t, table.Alter(ctx, a...), oribi.ErrSchema)
	}
	must.Fail(t, table.Alter(ctx, oribi.AddIndex("by_s", "k")), oribi.ErrExists)
	must.Do(t, table.Alter(ctx, oribi.RenameColumn("s", "text")))
	must.Equal(t, table.Indexes(), []oribi.IndexInfo{{Name: "by_s", Columns: []string{"text"}}})
	long := oribi.Row{"k": 1, "text": strings.Repeat("x", 20_000), "d": 0.5, "a": true}
	b := store.NewBatch()
	b.Insert(table, long)
	err := must.Err(b.Commit(ctx))
	must.Fail(t, err, oribi.ErrRow)
	must.Contain(t, fmt.Sprint(err), `index "by_s": an entry of`)
	must.Do(t, store.DropTable("t"))
}

// Salvage leaves the entries of indexes out. Reads by an index look through the table until it is built again,
// by the caller or, in a store with background work, by itself.
func TestIndexesAreBuiltAgainAfterSalvage(t *testing.T) {
	ctx := context.Background()
	p := newPeople(t)
	for range 60 {
		p.commit()
		if p.rng.IntN(10) == 0 {
			must.Do(t, p.table.Flush(ctx))
		}
	}
	must.Do(t, p.store.Close())
	rows := p.rows
	for _, manual := range []bool{true, false} {
		p.rows = maps.Clone(rows)
		out := fmt.Sprint("/salvaged", manual)
		o := &oribi.Options{FS: p.fs, Manual: manual}
		must.Get(salvage.Run(ctx, "/people", out, o, func(l salvage.Loss) { t.Errorf("%+v", l) }))(t)
		p.store = must.Get(oribi.Open(out, o))(t)
		p.table = must.Get(p.store.Table("people"))(t)
		p.check(p.rows)
		if manual {
			must.Do(t, p.table.Alter(ctx, oribi.AddUnique("by_email", "email")))
			must.Do(t, p.table.Alter(ctx, oribi.AddIndex("by_place", "place", "v")))
		} else {
			for _, x := range []oribi.Alteration{oribi.AddUnique("by_email", "email"), oribi.AddIndex("by_place", "place", "v")} {
				if err := p.table.Alter(ctx, x); !errors.Is(err, oribi.ErrExists) { // it is complete by now
					must.Do(t, err)
				}
			}
		}
		p.verify()
		p.compareScans()
		for range 20 {
			p.commit()
		}
		p.check(p.rows)
		p.verify()
		must.Do(t, p.store.Close())
	}
}

// Rows that are in memory, but not yet visible, when an index is added get their entries.
func TestIndexIsAddedBeforeRowsAreVisible(t *testing.T) {
	ctx := context.Background()
	disk := faultfs.New(vfs.NewMem())
	store := must.Get(oribi.Open("/people", &oribi.Options{FS: disk, Manual: true}))(t)
	defer store.Close()
	table := numbersTable(t, store, "t")
	fillNumbers(t, store, table, 0, 1)
	var stop atomic.Bool
	disk.Watch(func(c faultfs.Call) error { // batches stay invisible for a while
		for range 100 {
			if c.Op == faultfs.Sync {
				runtime.Gosched()
			}
		}
		return nil
	})
	var wg sync.WaitGroup
	for i := range 4 {
		wg.Go(func() {
			for k := i; !stop.Load(); k += 4 {
				b := store.NewBatch()
				b.Upsert(table, oribi.Row{"k": 1 + k%4000, "v": k})
				must.Get(b.Commit(ctx))(t)
			}
		})
	}
	for range 40 {
		must.Do(t, table.Alter(ctx, oribi.AddIndex("by_v", "v")))
		must.Do(t, store.VerifyDeep(ctx, func(f oribi.Finding) { t.Errorf("%+v", f) }))
		must.Do(t, table.Alter(ctx, oribi.DropIndex("by_v")))
	}
	stop.Store(true)
	wg.Wait()
}

// Of many operations that are looked up together, one that sets some columns of a row may take the values that
// another one inserts.
func TestUniqueValuesOfAnInsertAndAnUpdateInOneBatch(t *testing.T) {
	ctx := context.Background()
	for name, change := range map[string]func(b *oribi.Batch, p *people){
		"update":            func(b *oribi.Batch, p *people) { b.Update(p.table, oribi.Row{"k": 1, "email": "taken"}) },
		"upsert of columns": func(b *oribi.Batch, p *people) { b.Upsert(p.table, oribi.Row{"k": 1, "email": "taken"}) },
	} {
		for _, first := range []bool{true, false} {
			t.Run(fmt.Sprint(name, first), func(t *testing.T) {
				p := newPeople(t)
				defer func() { p.store.Close() }()
				p.insert(1, "one")
				b := p.store.NewBatch()
				if first {
					change(b, p)
				}
				for k := range 100 {
					b.Insert(p.table, oribi.Row{"k": 100 + k, "email": fmt.Sprint(k), "place": "", "v": 0})
				}
				b.Insert(p.table, oribi.Row{"k": 50, "email": "taken", "place": "", "v": 0})
				if !first {
					change(b, p)
				}
				must.Fail(t, must.Err(b.Commit(ctx)), oribi.ErrNotUnique)
				must.Equal(t, must.Get(p.table.GetBy(ctx, "by_email", "one"))(t)["k"], any(int64(1)))
			})
		}
	}
}
