package storetest

import (
	"errors"
	"fmt"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/oribi-db/oribi"
	"github.com/oribi-db/oribi/internal/must"
	"github.com/oribi-db/oribi/mvcc"
	"github.com/oribi-db/oribi/schema"
	"github.com/oribi-db/oribi/vfs"
)

type tagged2 struct {
	Host    string           `oribi:"host,key,varchar(10)"`
	ID      int64            `oribi:",auto"`
	Price   oribi.Decimal    `oribi:"price,decimal(18,2)"`
	Costs   []*oribi.Decimal `oribi:"costs,decimal(9,3)"`
	Day     time.Time        `oribi:"day,date,index"`
	Days    []time.Time      `oribi:"days,date"`
	Small   int              `oribi:"small,int16,enc=rle,default=-7"`
	Name    string           `oribi:"name,default='a, ''b''',index=by_name"`
	Place   string           `oribi:"place,index=by_name,index=by_place,enc=prefix"`
	Mail    *string          `oribi:"mail,unique,varchar(20),default="`
	Made    time.Time        `oribi:"made,immutable,default=2026-01-02T03:04:05.000006Z"`
	Seen    *time.Time       `oribi:"seen,expires=24h"`
	Note    []byte           `oribi:"note,dense,default=0xff00"`
	Words   []*string        `oribi:"words,default='[\"x\",null]',enc=dict"`
	Missing bool             `oribi:"-"`
}

// A table of each kind of tag reads back after another Open, with the columns, indexes, and expiry that the
// tags name.
func TestTagsOfEveryKind(t *testing.T) {
	w, ctx := newFakeWall(), t.Context()
	open := func() (*oribi.Store, *oribi.TableOf[tagged2]) {
		store := must.Get(oribi.Open("/tags", &oribi.Options{FS: w.mem, Clock: mvcc.NewHybridClock(w.time), Manual: true}))(t)
		return store, must.Get(oribi.OpenTable[tagged2](store, "tagged"))(t)
	}
	store, table := open()
	cost := oribi.NewDecimal(1500, 3)
	mail, day, now := "a@b", time.Date(2026, 5, 6, 0, 0, 0, 0, time.UTC), w.time()
	row := tagged2{Host: "h", Price: oribi.NewDecimal(-105, 2), Costs: []*oribi.Decimal{&cost, nil},
		Day: day.Add(5 * time.Hour), Days: []time.Time{day}, Small: 300, Name: "n", Place: "p", Mail: &mail,
		Made: now.Add(1999), Seen: &now, Note: []byte{1}, Words: []*string{&mail, nil}}
	must.Get(table.Insert(ctx, row))(t)
	row.ID, row.Day, row.Made = 1, day, now.Add(1000)
	must.Do(t, store.Close())

	store, table = open()
	defer func() { must.Do(t, store.Close()) }()
	must.Equal(t, must.Get(table.Get(ctx, oribi.Key{"h", 1}))(t), row)
	must.Equal(t, must.Get(table.GetBy(ctx, "by_mail", mail))(t), row)
	var columns []string
	for _, c := range table.Table.Schema().Columns {
		text := c.Name + " " + c.TypeName()
		for name, set := range map[string]bool{"key": c.Key, "null": c.Nullable, "auto": c.AutoIncrement, "fixed": c.Immutable} {
			if set {
				text += " " + name
			}
		}
		if c.Encoding != schema.Auto {
			text += " " + c.Encoding.FileName()
		}
		if c.Compression != schema.DefaultCompression {
			text += " " + c.Compression.FileName()
		}
		words := strings.Fields(text)
		columns = append(columns, strings.Join(words, " "))
	}
	for i, want := range []string{"host varchar(10) key", "auto_incrementing_id int64 key auto", "price decimal(18,2)",
		"costs array(decimal(9,3))", "day date", "days array(date)", "small int16 rle", "name string",
		"place string prefix", "mail varchar(20) null", "made timestamp fixed", "seen timestamp null", "note binary dense",
		"words array(string) dict"} {
		if len(columns[i]) != len(want) || !strings.HasPrefix(columns[i], strings.Join(strings.Fields(want)[:2], " ")) {
			t.Errorf("column %q, want %q", columns[i], want)
		}
	}
	must.Equal(t, fmt.Sprint(table.Table.Indexes()),
		"[{by_day [day] false} {by_mail [mail] true} {by_name [name place] false} {by_place [place] false}]")

	// A row that sets no column has the defaults.
	b := store.NewBatch()
	zero := oribi.Decimal{}
	b.Insert(table.Table, oribi.Row{"host": "d", "price": zero, "costs": []any{}, "day": day, "days": []any{}, "place": ""})
	must.Get(b.Commit(ctx))(t)
	got := must.Get(table.Table.Get(ctx, oribi.Key{"d", 2}))(t)
	for name, want := range map[string]any{"small": int16(-7), "name": "a, 'b'", "mail": "", "seen": nil, "note": []byte{255, 0},
		"made": time.Date(2026, 1, 2, 3, 4, 5, 6000, time.UTC), "words": []any{"x", nil}} {
		must.Equal(t, got[name], want, name)
	}

	_, err := table.Update(ctx, row)
	must.Fail(t, err, oribi.ErrRow, "an immutable column")
	w.move(24 * time.Hour)
	must.Fail(t, must.Err(table.Get(ctx, oribi.Key{"h", 1})), oribi.ErrNotFound, "expired")
	must.Do(t, must.Err(table.Get(ctx, oribi.Key{"d", 2})))
}

// Bad tags are refused with the field and the option, and no table is created.
func TestBadTagsNameTheField(t *testing.T) {
	store := must.Get(oribi.Open("/tags", &oribi.Options{FS: vfs.NewMem(), Manual: true}))(t)
	defer store.Close()
	check := func(err error, want string) {
		t.Helper()
		must.Fail(t, err, oribi.ErrSchema, want)
		must.Contain(t, err.Error(), want)
		if n := len(store.Tables()); n > 0 {
			t.Fatalf("%d tables", n)
		}
	}
	bad(t, store, check, struct {
		K int64  `oribi:"k,key"`
		V string `oribi:"v,uniqe"`
	}{}, `.V: tag option "uniqe": did you mean "unique"?`)
	bad(t, store, check, struct {
		K int64  `oribi:"k,key"`
		V string `oribi:"v,colour"`
	}{}, `.V: tag option "colour", want one of key, auto, `)
	bad(t, store, check, struct {
		K int64 `oribi:"k,key,"`
	}{}, `.K: tag option "", want one of`)
	bad(t, store, check, struct {
		K int64 `oribi:"k,key,key"`
	}{}, `.K: tag option "key" is given twice`)
	bad(t, store, check, struct {
		K int64  `oribi:"k,key"`
		V string `oribi:"v,index=a,index=a"`
	}{}, `.V: tag option "index=a" is given twice`)
	bad(t, store, check, struct {
		K int64  `oribi:"k,key"`
		V string `oribi:"v,lz4hc,dense"`
	}{}, `.V: tag option "dense": there is another compression`)
	bad(t, store, check, struct {
		K int64  `oribi:"k,key"`
		V string `oribi:"v,string,varchar(3)"`
	}{}, `.V: tag option "varchar(3)": there is another type`)
	bad(t, store, check, struct {
		K int64         `oribi:"k,key"`
		V oribi.Decimal `oribi:"v"`
	}{}, `.V: a Decimal needs its digits, as in oribi:"v,decimal(18,2)"`)
	bad(t, store, check, struct {
		K int64         `oribi:"k,key"`
		V oribi.Decimal `oribi:"v,decimal(39,2)"`
	}{}, `.V: tag option "decimal(39,2)": type "decimal(39,2)": precision must be 1 to 38`)
	bad(t, store, check, struct {
		K int64         `oribi:"k,key"`
		V oribi.Decimal `oribi:"v,decimal(3,4)"`
	}{}, `.V: column "v": decimal(3,4)`)
	bad(t, store, check, struct {
		K int64         `oribi:"k,key"`
		V oribi.Decimal `oribi:"v,decimal(18,2"`
	}{}, `.V: tag option "decimal(18,2"`)
	bad(t, store, check, struct {
		K int64  `oribi:"k,key"`
		V string `oribi:"v,decimal(18,2)"`
	}{}, `.V: a string does not fit type decimal(18,2)`)
	bad(t, store, check, struct {
		K int64 `oribi:"k,key"`
		V int16 `oribi:"v,int32"`
	}{}, `.V: a int16 does not fit type int32`)
	bad(t, store, check, struct {
		K int64   `oribi:"k,key"`
		V []int64 `oribi:"v,array(int64)"`
	}{}, `.V: tag option "array(int64)": a slice is an array`)
	bad(t, store, check, struct {
		K int64 `oribi:"k,key"`
		V int8  `oribi:"v,default=128"`
	}{}, `.V: default of int8: "128" `)
	bad(t, store, check, struct {
		K int64     `oribi:"k,key"`
		V time.Time `oribi:"v,date,default=2026-02-30"`
	}{}, `.V: default of date: "2026-02-30"`)
	bad(t, store, check, struct {
		K int64  `oribi:"k,key"`
		V string `oribi:"v,default='x"`
	}{}, `.V: tag option "default='x" has no closing quote`)
	bad(t, store, check, struct {
		K int64  `oribi:"k,key"`
		V string `oribi:"v,default='x'y"`
	}{}, `.V: tag option "default='x'y": a comma follows the closing quote`)
	bad(t, store, check, struct {
		K int64 `oribi:"k,key,default=1"`
	}{}, `.K: column "k": a key column cannot have a default`)
	bad(t, store, check, struct {
		K int64 `oribi:"k,key,immutable"`
	}{}, `.K: column "k": a key column never changes`)
	bad(t, store, check, struct {
		K int64 `oribi:"k,auto"`
	}{}, `.K: tag option "auto": as in Kudu, the column is named auto_incrementing_id, whatever the field is called: leave the name "k" out, as in oribi:",auto"`)
	bad(t, store, check, struct {
		K string `oribi:",auto"`
	}{}, `.K: column "auto_incrementing_id": an auto-incrementing column must be an int64 key column`)
	bad(t, store, check, struct {
		K int64  `oribi:"k,key"`
		V string `oribi:"v,expires=1h"`
	}{}, `.V: tag option "expires": type string, want timestamp`)
	bad(t, store, check, struct {
		K int64     `oribi:"k,key"`
		V time.Time `oribi:"v,expires=soon"`
	}{}, `.V: tag option "expires=soon": want an age such as 24h`)
	bad(t, store, check, struct {
		K int64     `oribi:"k,key"`
		V time.Time `oribi:"v,expires=-1h"`
	}{}, `.V: tag option "expires=-1h": want an age`)
	bad(t, store, check, struct {
		K int64     `oribi:"k,key"`
		V time.Time `oribi:"v,expires="`
	}{}, `.V: tag option "expires=": a value is missing`)
	bad(t, store, check, struct {
		K int64     `oribi:"k,key"`
		V time.Time `oribi:"v,expires"`
		W time.Time `oribi:"w,expires"`
	}{}, `.W: rows expire by `)
	bad(t, store, check, struct {
		K int64 `oribi:"k,key"`
		V int64 `oribi:"v,enc=rel"`
	}{}, `.V: tag option "enc=rel": unknown encoding; did you mean "rle"?`)
	bad(t, store, check, struct {
		K int64 `oribi:"k,key"`
		V int64 `oribi:"v,enc=dict"`
	}{}, `.V: column "v": encoding DICT_ENCODING does not fit`)
	bad(t, store, check, struct {
		K int64   `oribi:"k,key"`
		V float64 `oribi:"v,index"`
	}{}, `.V: type double cannot be in an index`)
	bad(t, store, check, struct {
		K     int64 `oribi:"k,key"`
		inner `oribi:",index"`
	}{}, `.inner: an embedded struct has no options`)
}

type inner struct{ V int64 }

func bad[T any](t *testing.T, store *oribi.Store, check func(error, string), _ T, want string) {
	t.Helper()
	_, err := oribi.OpenTable[T](store, "bad")
	check(err, want)
}

// A row that was written with a time is found by that time: both are rounded down, toward the past before
// 1970 too. ExactTime refuses such rows, and changes nothing else.
func TestTimesAreRoundedDown(t *testing.T) {
	type event struct {
		At    time.Time   `oribi:"at,key"`
		Seen  *time.Time  `oribi:"seen"`
		Times []time.Time `oribi:"times"`
	}
	ctx := t.Context()
	store := must.Get(oribi.Open("/times", &oribi.Options{FS: vfs.NewMem(), Manual: true}))(t)
	defer store.Close()
	events := must.Get(oribi.OpenTable[event](store, "events"))(t)
	exact := must.Get(oribi.OpenTable[event](store, "events", oribi.ExactTime()))(t)
	exactly := must.Get(oribi.Typed[event](events.Table, nil, oribi.ExactTime()))(t)
	for _, at := range []time.Time{time.Unix(1e9, 1999), time.Unix(-1, 999_999_999), time.Unix(0, 1)} {
		down := at.Truncate(time.Microsecond).UTC() // of a time since the year 1
		row := event{At: at, Seen: &at, Times: []time.Time{at}}
		for _, table := range []*oribi.TableOf[event]{exact, exactly} {
			for _, row := range []event{{At: at}, {Seen: &at}, {Times: row.Times}} {
				err := must.Err(table.Put(ctx, row))
				must.Fail(t, err, oribi.ErrRow)
				must.Contain(t, err.Error(), "has nanoseconds, a timestamp has microseconds")
			}
		}
		must.Get(events.Put(ctx, row))(t)
		got := must.Get(exact.Get(ctx, at))(t)
		must.Equal(t, got, event{At: down, Seen: &down, Times: []time.Time{down}})
		for _, p := range []oribi.Predicate{oribi.Eq("seen", at), oribi.In("seen", at), oribi.Between("at", at, at)} {
			must.Equal(t, must.Get(events.Table.Count(ctx, oribi.Where(p)))(t), 1, p)
		}
		b := store.NewBatch()
		b.Update(events.Table, oribi.Row{"at": at, "seen": at})
		must.Get(b.Commit(ctx))(t)
		must.Get(exact.Put(ctx, event{At: down, Seen: &down}))(t)
	}
	must.Equal(t, must.Get(events.Table.Count(ctx))(t), 3)
	far := time.Date(300_000, 1, 1, 0, 0, 0, 0, time.UTC)
	must.Fail(t, must.Err(events.Put(ctx, event{At: far})), oribi.ErrRow)
}

type v1 struct {
	ID   int64  `oribi:"id,key"`
	Name string `oribi:"name"`
}

type v2 struct {
	ID    int64   `oribi:"id,key"`
	Name  string  `oribi:"name"`
	Mail  *string `oribi:"mail,unique"`
	Level int     `oribi:"level,int16,default=3,index"`
}

func evolving(t *testing.T, mem *vfs.Mem) *oribi.Store {
	return must.Get(oribi.Open("/evolve", &oribi.Options{FS: mem, Manual: true}))(t)
}

// Evolve adds the columns and indexes of new fields. Rows from before have NULL and the default.
func TestEvolve(t *testing.T) {
	ctx, mem := t.Context(), vfs.NewMem()
	store := evolving(t, mem)
	must.Get(must.Get(oribi.OpenTable[v1](store, "t"))(t).Put(ctx, v1{1, "a"}))(t)
	_, err := oribi.OpenTable[v2](store, "t")
	must.Fail(t, err, oribi.ErrSchema)
	must.Contain(t, err.Error(), `v2.Mail: table "t" has no column "mail"`)
	must.Contain(t, err.Error(), `oribi.Evolve()`)
	for range 2 { // the second time it finds nothing to do
		var tables [4]*oribi.TableOf[v2]
		var errs [4]error
		var all sync.WaitGroup
		for i := range tables {
			all.Go(func() { tables[i], errs[i] = oribi.OpenTable[v2](store, "t", oribi.Evolve()) })
		}
		all.Wait()
		must.Do(t, errors.Join(errs[:]...))
		must.Equal(t, must.Get(tables[3].Get(ctx, 1))(t), v2{1, "a", nil, 3})
		must.Equal(t, fmt.Sprint(tables[0].Table.Indexes()), "[{by_level [level] false} {by_mail [mail] true}]")
		mail := "m"
		must.Get(tables[0].Put(ctx, v2{2, "b", &mail, 5}))(t)
		must.Fail(t, must.Err(tables[0].Put(ctx, v2{3, "b", &mail, 5})), oribi.ErrNotUnique)
		version := tables[0].Table.Properties().SchemaVersion
		must.Do(t, store.Close())
		store = evolving(t, mem)
		table := must.Get(store.Table("t"))(t)
		must.Equal(t, table.Properties().SchemaVersion, version)
		must.Equal(t, len(table.Schema().Columns), 4)
	}
	must.Do(t, store.Close())

	// A store that is read-only has its columns, or ErrReadOnly.
	readOnly := must.Get(oribi.Open("/evolve", &oribi.Options{FS: mem, ReadOnly: true}))(t)
	defer readOnly.Close()
	must.Do(t, must.Err(oribi.OpenTable[v2](readOnly, "t", oribi.Evolve())))
	type v3 struct {
		v2
		More *int64 `oribi:"more"`
	}
	must.Fail(t, must.Err(oribi.OpenTable[v3](readOnly, "t", oribi.Evolve())), oribi.ErrReadOnly)
}

// What Evolve cannot do is refused with each of the fields, and nothing is changed.
func TestEvolveRefuses(t *testing.T) {
	store := evolving(t, vfs.NewMem())
	defer store.Close()
	table := must.Get(store.CreateTable("t", must.Get(oribi.SchemaOf[v1]())(t), oribi.Index("by_name", "name", "id")))(t)
	before := table.Schema()
	check := func(err error, wants ...string) {
		t.Helper()
		must.Fail(t, err, oribi.ErrSchema)
		for _, want := range wants {
			must.Contain(t, err.Error(), want)
		}
		if table.Schema() != before || len(table.Indexes()) != 1 {
			t.Fatal("changed")
		}
	}
	check(must.Err(oribi.OpenTable[struct {
		ID    int64  `oribi:"id,key"`
		Other int64  `oribi:"other,key"`
		Name  string `oribi:"name"`
		Fine  *int64
		Size  int64
	}](store, "t", oribi.Evolve())), `.Other: new column "other": a table's key is chosen`,
		`.Size: new column "size": existing rows need a value`)
	check(must.Err(oribi.OpenTable[struct {
		ID   int64 `oribi:"id,key"`
		Name int64 `oribi:"name"`
		Fine *int64
	}](store, "t", oribi.Evolve())), `.Name: column "name": a int64 does not fit type string`)
	check(must.Err(oribi.OpenTable[struct {
		ID   int64  `oribi:"id,key"`
		Name string `oribi:"name,varchar(5)"`
		Fine *int64
	}](store, "t", oribi.Evolve())), `.Name: column "name" has type string: SetType changes it`)
	check(must.Err(oribi.OpenTable[struct {
		Name string `oribi:"name,key"`
		ID   int64  `oribi:"id"`
		Fine *int64
	}](store, "t", oribi.Evolve())), `.Name: column "name": a table's key`, `.ID: column "id": a table's key`)
	check(must.Err(oribi.OpenTable[struct {
		ID   int64  `oribi:"id,key"`
		Name string `oribi:"name,index"`
		Fine *int64
	}](store, "t", oribi.Evolve())), `index "by_name" of the table is another one`)
}

// The default of an added column is a Go value.
func TestAddColumnTakesValues(t *testing.T) {
	store := evolving(t, vfs.NewMem())
	defer store.Close()
	table := must.Get(oribi.OpenTable[v1](store, "t"))(t)
	must.Get(table.Put(t.Context(), v1{1, "a"}))(t)
	add := func(c schema.Column, value ...any) error {
		return table.Table.Alter(t.Context(), oribi.AddColumn(c, value...))
	}
	day := time.Date(2026, 1, 2, 0, 0, 0, 0, time.UTC)
	must.Do(t, add(schema.Column{Name: "i", Type: schema.Int16}, 7))
	must.Do(t, add(schema.Column{Name: "d", Type: schema.Date}, day))
	must.Do(t, add(schema.Column{Name: "s", Type: schema.String, Nullable: true}, nil))
	must.Do(t, add(schema.Column{Name: "a", Type: schema.Array, Element: schema.Int32}, []int32{1, 2}))
	must.Do(t, add(schema.Column{Name: "c", Type: schema.String, Default: []byte("cell")}))
	must.Equal(t, must.Get(table.Table.Get(t.Context(), 1))(t), oribi.Row{"id": int64(1), "name": "a", "i": int16(7), "d": day,
		"s": nil, "a": []any{int32(1), int32(2)}, "c": "cell"})
	before := table.Table.Schema()
	for i, err := range []error{
		add(schema.Column{Name: "x", Type: schema.Int16}, 70_000), add(schema.Column{Name: "x", Type: schema.Int16}, "text"),
		add(schema.Column{Name: "x", Type: schema.Int16}, 1, 2), add(schema.Column{Name: "x", Type: schema.Int16}, nil),
		add(schema.Column{Name: "x", Type: schema.String, Default: []byte("a")}, "b"), add(schema.Column{Name: "x", Type: 99}, 1),
		add(schema.Column{Name: "x", Type: schema.Array, Element: 99}, []int{1}),
		add(schema.Column{Name: "x", Type: schema.Int16, Key: true}, 1),
	} {
		must.Fail(t, err, oribi.ErrSchema, i)
		must.Contain(t, err.Error(), `"x"`, i)
	}
	must.Equal(t, table.Table.Schema() == before, true)
}
