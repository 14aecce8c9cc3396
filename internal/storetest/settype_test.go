package storetest

import (
	"context"
	"errors"
	"fmt"
	"math"
	"reflect"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/oribi-db/oribi"
	"github.com/oribi-db/oribi/internal/must"
	"github.com/oribi-db/oribi/internal/seedtest"
	"github.com/oribi-db/oribi/mvcc"
	"github.com/oribi-db/oribi/schema"
	"github.com/oribi-db/oribi/vfs"
	"github.com/oribi-db/oribi/vfs/crashfs"
)

// Each value of one type becomes the value of another type that the documentation promises, or is
// refused with ErrRow, and then nothing changes.
func TestSetTypeConvertsValues(t *testing.T) {
	type no struct{ text string } // is in the error
	decimal := func(precision, scale int) schema.Column {
		return schema.Column{Type: schema.DecimalType(precision), Precision: precision, Scale: scale}
	}
	of := func(t schema.Type) schema.Column { return schema.Column{Type: t} }
	array := func(t schema.Type) schema.Column { return schema.Column{Type: schema.Array, Element: t} }
	dec := func(unscaled int64, scale int) oribi.Decimal {
		return oribi.Decimal{Unscaled: oribi.Int128{Lo: uint64(unscaled), Hi: unscaled >> 63}, Scale: scale}
	}
	day := func(y, m, d int) time.Time { return time.Date(y, time.Month(m), d, 0, 0, 0, 0, time.UTC) }
	for _, c := range []struct {
		name     string
		from, to schema.Column
		value    any
		want     any
	}{
		{"wider", of(schema.Int8), of(schema.Int64), -128, int64(-128)},
		{"narrower", of(schema.Int64), of(schema.Int8), -128, int8(-128)},
		{"too narrow", of(schema.Int64), of(schema.Int8), 128, no{"out of range"}},
		{"int128", of(schema.Int64), of(schema.Int128), math.MinInt64, oribi.Int128{Lo: 1 << 63, Hi: -1}},
		{"int to double", of(schema.Int64), of(schema.Double), 1 << 53, float64(1 << 53)},
		{"int beyond doubles", of(schema.Int64), of(schema.Double), 1<<53 + 1, no{"9007199254740993"}},
		{"int beyond floats", of(schema.Int32), of(schema.Float), 1<<24 + 1, no{"16777217"}},
		{"int to decimal", of(schema.Int32), decimal(9, 2), 12345, dec(1234500, 2)},
		{"int beyond the decimal", of(schema.Int32), decimal(6, 2), 12345, no{"12345"}},
		{"whole double", of(schema.Double), of(schema.Int16), -7.0, int16(-7)},
		{"fraction", of(schema.Double), of(schema.Int16), 0.5, no{"0.5"}},
		{"NaN to int", of(schema.Double), of(schema.Int16), math.NaN(), no{"NaN"}},
		{"double to float", of(schema.Double), of(schema.Float), 0.25, float32(0.25)},
		{"double beyond floats", of(schema.Double), of(schema.Float), 0.1, no{"0.1"}},
		{"double to decimal", of(schema.Double), decimal(9, 2), 0.1, dec(10, 2)},
		{"double between decimals", of(schema.Double), decimal(9, 1), 0.25, no{"0.25"}},
		{"float to double", of(schema.Float), of(schema.Double), float32(0.1), float64(float32(0.1))},
		{"decimal to double", decimal(9, 2), of(schema.Double), dec(110, 2), 1.1},
		{"decimal to int", decimal(9, 2), of(schema.Int32), dec(1100, 2), int32(11)},
		{"decimal with a fraction", decimal(9, 2), of(schema.Int32), dec(1101, 2), no{"11.01"}},
		{"decimal with a larger scale", decimal(9, 2), decimal(20, 5), dec(-1101, 2), dec(-1101000, 5)},
		{"decimal with a smaller scale", decimal(9, 2), decimal(9, 1), dec(1110, 2), dec(111, 1)},
		{"decimal that loses a digit", decimal(9, 2), decimal(9, 1), dec(1111, 2), no{"11.11"}},
		{"decimal with too many digits", decimal(9, 2), decimal(4, 2), dec(123456, 2), no{"1234.56"}},
		{"bool to int", of(schema.Bool), of(schema.Int32), true, int32(1)},
		{"int to bool", of(schema.Int32), of(schema.Bool), 0, false},
		{"int that is no bool", of(schema.Int32), of(schema.Bool), 2, no{"only 0 and 1"}},
		{"date to timestamp", of(schema.Date), of(schema.Timestamp), day(1500, 3, 1), day(1500, 3, 1)},
		{"timestamp to date", of(schema.Timestamp), of(schema.Date), day(1969, 12, 31), day(1969, 12, 31)},
		{"timestamp of noon", of(schema.Timestamp), of(schema.Date),
			day(1969, 12, 31).Add(12 * time.Hour), no{"midnight"}},
		{"text to int", of(schema.String), of(schema.Int32), "-12", int32(-12)},
		{"text with a zero", of(schema.String), of(schema.Int32), "007", no{`"007"`}},
		{"empty text", of(schema.String), of(schema.Int32), "", no{`""`}},
		{"text to bool", of(schema.String), of(schema.Bool), "true", true},
		{"text to date", of(schema.String), of(schema.Date), "2024-02-29", day(2024, 2, 29)},
		{"text that is no date", of(schema.String), of(schema.Date), "2023-02-29", no{"2023-02-29"}},
		{"text to timestamp", of(schema.String), of(schema.Timestamp), "2024-02-29T00:00:00Z", day(2024, 2, 29)},
		{"text to decimal", of(schema.String), decimal(9, 2), "1.5", dec(150, 2)},
		{"text to varchar", of(schema.String), schema.Column{Type: schema.Varchar, Length: 3}, "äöü", "äöü"},
		{"text beyond the varchar", of(schema.String),
			schema.Column{Type: schema.Varchar, Length: 3}, "äöü!", no{"4 characters"}},
		{"longer varchar", schema.Column{Type: schema.Varchar, Length: 3},
			schema.Column{Type: schema.Varchar, Length: 5}, "äöü", "äöü"},
		{"text to array", of(schema.String), array(schema.Int32), "[1,null]", []any{int32(1), nil}},
		{"int to text", of(schema.Int64), of(schema.String), math.MinInt64, "-9223372036854775808"},
		{"double to text", of(schema.Double), of(schema.String), 0.1, "0.1"},
		{"decimal to text", decimal(9, 2), of(schema.String), dec(150, 2), "1.50"},
		{"date to text", of(schema.Date), of(schema.String), day(1500, 3, 1), "1500-03-01"},
		{"bool to text", of(schema.Bool), of(schema.String), false, "false"},
		{"array of wider elements", array(schema.Int8), array(schema.Int64),
			[]any{int8(-1), nil}, []any{int64(-1), nil}},
		{"array with an element that is too wide", array(schema.Int64), array(schema.Int8),
			[]any{int64(1), int64(300)}, no{"element 1"}},
		{"array to text", array(schema.Int8), of(schema.String), []any{int8(-1), nil}, "[-1,null]"},
		{"int to date", of(schema.Int32), of(schema.Date), 1, oribi.ErrUnsupported},
		{"bool to double", of(schema.Bool), of(schema.Binary), true, oribi.ErrUnsupported},
		{"array to number", array(schema.Int8), of(schema.Int8), []any{int8(1)}, oribi.ErrUnsupported},
	} {
		t.Run(c.name, func(t *testing.T) {
			ctx := context.Background()
			store := must.Get(oribi.Open("/s", &oribi.Options{FS: vfs.NewMem(), Manual: true}))(t)
			defer store.Close()
			c.from.Name, c.from.Nullable = "v", true
			s := must.Get(schema.New([]schema.Column{{Name: "k", Type: schema.Int64}, c.from,
				{Name: "z", Type: schema.Int8, Nullable: true}}, 1))(t)
			table := must.Get(store.CreateTable("t", s))(t)
			putRow(t, store, table, oribi.OpInsert, oribi.Row{"k": 1, "v": nil, "z": 1})
			putRow(t, store, table, oribi.OpInsert, oribi.Row{"k": 2, "v": c.value, "z": 2})
			before := must.Get(table.Get(ctx, 2))(t)
			err := table.Alter(ctx, oribi.SetType("v", c.to))
			row, got := table.Get(ctx, 2)
			switch want := c.want.(type) {
			case no:
				if !errors.Is(err, oribi.ErrRow) || !strings.Contains(err.Error(), want.text) ||
					!strings.Contains(err.Error(), "key 2") {
					t.Errorf("error %v, want ErrRow with %q and the key", err, want.text)
				}
				if v := table.Properties().SchemaVersion; v != 0 || got != nil || len(row) != len(before) {
					t.Errorf("after a refused change: schema version %d, %v, row %v, before %v", v, got, row, before)
				}
			case error:
				if !errors.Is(err, want) || table.Properties().SchemaVersion != 0 {
					t.Errorf("error %v, want %v; schema version %d", err, want, table.Properties().SchemaVersion)
				}
			default:
				if err != nil || got != nil ||
					!reflect.DeepEqual(row, oribi.Row{"k": int64(2), "v": want, "z": int8(2)}) {
					t.Errorf("%v, %v, row %#v, want v = %#v", err, got, row, want)
				}
				if row, err := table.Get(ctx, 1); err != nil || row["v"] != nil || row["z"] != int8(1) {
					t.Errorf("NULL became %v, %v", row, err)
				}
			}
		})
	}
}

// A crash at any step of SetType leaves the table with one of the two types, in all rows and in all
// versions that history keeps.
func TestCrashDuringSetTypeLeavesOneType(t *testing.T) {
	ctx, r := context.Background(), seedtest.Rand(t)
	disk := crashfs.New(vfs.NewMem())
	open := func(fsys vfs.FS) (*oribi.Store, error) {
		return oribi.Open("/alter", &oribi.Options{FS: fsys, Clock: mvcc.NewLogicalClock(mvcc.Min),
			History: oribi.HistoryForever, Manual: true})
	}
	store := must.Get(open(disk))(t)
	columns := must.Get(
		schema.New([]schema.Column{{Name: "k", Type: schema.Int64}, {Name: "s", Type: schema.String}}, 1))(t)
	table := must.Get(store.CreateTable("t", columns))(t)
	putRow(t, store, table, oribi.OpInsert, oribi.Row{"k": 1, "s": "10"})
	first := putRow(t, store, table, oribi.OpInsert, oribi.Row{"k": 2, "s": "20"})
	must.Do(t, table.Flush(ctx))
	putRow(t, store, table, oribi.OpUpdate, oribi.Row{"k": 1, "s": "11"})
	last := putRow(t, store, table, oribi.OpInsert, oribi.Row{"k": 3, "s": "30"})

	check := func(at string, image *vfs.Mem) (converted bool) {
		store, err := open(image)
		if err != nil {
			t.Fatalf("%s: %v", at, err)
		}
		defer store.Close()
		table, err := store.Table("t")
		if err != nil {
			t.Fatalf("%s: %v", at, err)
		}
		converted = table.Schema().Columns[1].Type == schema.Int16
		row := func(k, n int64) oribi.Row {
			if converted {
				return oribi.Row{"k": k, "s": int16(n)}
			}
			return oribi.Row{"k": k, "s": strconv.FormatInt(n, 10)}
		}
		wantRows(t, at+", first", table, []oribi.Row{row(1, 10), row(2, 20)}, oribi.AsOf(first))
		wantRows(t, at+", last", table, []oribi.Row{row(1, 11), row(2, 20), row(3, 30)}, oribi.AsOf(last))
		found := func(f oribi.Finding) { t.Errorf("%s: %+v", at, f) }
		if err := store.VerifyDeep(ctx, found); err != nil {
			t.Fatalf("%s: %v", at, err)
		}
		return converted
	}
	states := [2]int{}
	crash := func(at string, point *crashfs.Point) (converted, strings int) {
		for s := range point.States(r.Uint64(), seedtest.Rounds(4, 2)) {
			if s.FlushForgotten {
				continue
			}
			if check(at+", "+s.Name, s.Image) {
				converted++
			} else {
				strings++
			}
		}
		states[0], states[1] = states[0]+strings, states[1]+converted
		return converted, strings
	}
	disk.OnOperation(func(c crashfs.Operation) error {
		crash(fmt.Sprintf("before %s of %s", c.Op, c.Name), c.Point())
		return nil
	})
	err := table.Alter(ctx, oribi.SetType("s", schema.Column{Type: schema.Int16}))
	disk.OnOperation(nil)
	if err != nil {
		t.Fatal(err)
	}
	before := states
	if _, strings := crash("after Alter", disk.Point()); strings > 0 {
		t.Errorf("after Alter, %d of the states have the old type", strings)
	}
	t.Logf("states during Alter: %d with the old type, %d with the new one", before[0], before[1])
	if before[0] == 0 || before[1] == 0 {
		t.Error("no crash came before, or none came after the metadata commit")
	}
	must.Do(t, store.Close())
}

// Operations that were added before the change are refused, wherever they are; reads that run
// continue with the old type.
func TestSetTypeAndOpenBatches(t *testing.T) {
	ctx := context.Background()
	store, table, _ := alterStore(t)
	putRow(t, store, table, oribi.OpInsert, oribi.Row{"k": 1, "n": 1})
	putRow(t, store, table, oribi.OpInsert, oribi.Row{"k": 2, "n": 2})
	typed := must.Get(oribi.Typed[struct {
		K int64 `oribi:"k"`
		N int32 `oribi:"n"`
	}](table))(t)
	b := store.NewBatch()
	b.Row(oribi.OpUpdate, table, oribi.Row{"k": 1, "n": 7})
	tx := must.Get(store.Begin(ctx))(t)
	defer tx.Rollback()
	tx.Row(oribi.OpUpdate, table, oribi.Row{"k": 2, "n": 8})
	sn := must.Get(store.Snapshot(ctx))(t)
	defer sn.Close()

	rows := 0
	for row, err := range table.Scan(ctx).Rows() {
		if rows == 0 {
			alter(t, table, oribi.SetType("n", schema.Column{Type: schema.String}))
		}
		if rows++; err != nil || row["n"] != int32(rows) {
			t.Fatalf("a scan that was running: %v, %v", row, err)
		}
	}
	if _, err := b.Get(ctx, table, 1); !errors.Is(err, oribi.ErrConflict) {
		t.Errorf("Batch.Get: %v", err)
	}
	if _, err := b.Commit(ctx); !errors.Is(err, oribi.ErrConflict) {
		t.Errorf("Batch.Commit: %v", err)
	}
	if _, err := tx.Get(table, 2); !errors.Is(err, oribi.ErrConflict) {
		t.Errorf("Tx.Get: %v", err)
	}
	if _, err := tx.Commit(); !errors.Is(err, oribi.ErrConflict) {
		t.Errorf("Tx.Commit: %v", err)
	}
	if _, err := typed.Get(ctx, 1); err == nil {
		t.Error("a TableOf with the old type reads the column")
	}
	want := []oribi.Row{{"k": int64(1), "n": "1", "s": nil}, {"k": int64(2), "n": "2", "s": nil}}
	wantRows(t, "now", table, want)
	wantRows(t, "snapshot", table, want, oribi.At(sn))
	putRow(t, store, table, oribi.OpUpdate, oribi.Row{"k": 1, "n": "seven"})
}

// A follower, a subscription to changes from before, a checkpoint, and the store that Salvage makes
// without metadata have the column with its new type and all versions.
func TestSetTypeIsSeenOutsideTheTable(t *testing.T) {
	needFollowers(t)
	ctx := context.Background()
	mem := vfs.NewMem()
	store := must.Get(oribi.Open("/store", &oribi.Options{FS: mem, Manual: true, History: oribi.HistoryForever}))(t)
	defer store.Close()
	s := must.Get(schema.New([]schema.Column{{Name: "k", Type: schema.Int64},
		{Name: "v", Type: schema.String, Nullable: true}, {Name: "w", Type: schema.Int8}}, 1))(t)
	table := must.Get(store.CreateTable("t", s))(t)
	first := putRow(t, store, table, oribi.OpInsert, oribi.Row{"k": 1, "v": "10", "w": 1})
	must.Do(t, table.Flush(ctx))
	follower := must.Get(oribi.Open("/store", &oribi.Options{FS: mem, ReadOnly: true, Follow: true}))(t)
	defer follower.Close()
	second := putRow(t, store, table, oribi.OpUpdate, oribi.Row{"k": 1, "v": "11"})
	alter(t, table, oribi.SetType("v", schema.Column{Type: schema.Int32}))
	last := putRow(t, store, table, oribi.OpInsert, oribi.Row{"k": 2, "v": 20, "w": 2})

	one := func(v any) oribi.Row { return oribi.Row{"k": int64(1), "v": v, "w": int8(1)} }
	two := oribi.Row{"k": int64(2), "v": int32(20), "w": int8(2)}
	check := func(what string, table *oribi.Table) {
		t.Helper()
		wantRows(t, what+", first", table, []oribi.Row{one(int32(10))}, oribi.AsOf(first))
		wantRows(t, what+", second", table, []oribi.Row{one(int32(11))}, oribi.AsOf(second))
		wantRows(t, what+", last", table, []oribi.Row{one(int32(11)), two}, oribi.AsOf(last))
	}
	check("writer", table)
	must.Do(t, follower.Refresh(ctx))
	followed := must.Get(follower.Table("t"))(t)
	check("follower", followed)

	var events [][][]byte
	for b, err := range store.Subscribe(ctx, first-1, oribi.Until(last)) {
		if err != nil {
			t.Fatal(err)
		}
		for _, c := range b.Changes {
			events = append(events, c.After)
		}
	}
	key := func(k byte) []byte { return []byte{k, 0, 0, 0, 0, 0, 0, 0} }
	want := [][][]byte{{key(1), {10, 0, 0, 0}, {1}}, {key(1), {11, 0, 0, 0}, {1}}, {key(2), {20, 0, 0, 0}, {2}}}
	if !reflect.DeepEqual(events, want) {
		t.Errorf("events %v, want %v", events, want)
	}

	must.Get(store.Checkpoint(ctx, "/checkpoint"))(t)
	must.Do(t, store.Close())
	for _, gone := range []string{"/store/meta", "/store/ANCHOR"} {
		must.Do(t, vfs.RemoveAll(mem, gone))
	}
	saved, losses := salvaged(t, mem)
	for _, l := range losses {
		if l.Rows != -1 { // else it is about a file of the metadata
			t.Errorf("loss %+v", l)
		}
	}
	copied := must.Get(openCopy(mem, "/checkpoint"))(t)
	defer copied.Close()
	for name, s := range map[string]*oribi.Store{"salvaged": saved, "checkpoint": copied} {
		table := must.Get(s.Table("t"))(t)
		check(name, table)
	}
}
