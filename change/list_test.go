package change

import (
	"bytes"
	"errors"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"github.com/oribi-db/oribi/internal/fault"
	"github.com/oribi-db/oribi/internal/fuzztest"
	"github.com/oribi-db/oribi/internal/must"
	"github.com/oribi-db/oribi/internal/seedtest"
	"github.com/oribi-db/oribi/schema"
)

// specSchema is the schema of the worked example in tablet spec §5.3.
func specSchema(t testing.TB) *schema.Schema {
	return makeSchema(t, 1,
		schema.Column{ID: 10, Name: "k", Type: schema.Int32},
		schema.Column{ID: 11, Name: "n", Type: schema.Int32},
		schema.Column{ID: 12, Name: "s", Type: schema.String, Nullable: true},
		schema.Column{ID: 300, Name: "b", Type: schema.Bool})
}

func update(columns ...any) List {
	l := AppendUpdateHeader(nil, Update)
	for i := 0; i < len(columns); i += 2 {
		cell, _ := columns[i+1].([]byte)
		l = AppendColumn(l, schema.ColumnID(columns[i].(int)), cell)
	}
	return l
}

func TestListsMatchTheWorkedExample(t *testing.T) {
	s := specSchema(t)
	reinsert := AppendColumn(AppendColumn(AppendUpdateHeader(nil, Reinsert), 11, []byte{5, 0, 0, 0}), 12, []byte("hi"))
	cases := []struct {
		name string
		got  List
		want string
	}{
		{"update 11=5", update(11, []byte{5, 0, 0, 0}), "01 0b 05 05 00 00 00"},
		{"update 11=-1", update(11, []byte{255, 255, 255, 255}), "01 0b 05 ff ff ff ff"},
		{"update 12=hi", update(12, []byte("hi")), "01 0c 03 68 69"},
		{"update 12=empty", update(12, []byte{}), "01 0c 01"},
		{"update 12=NULL", update(12, nil), "01 0c 00"},
		{"update 300=true", update(300, []byte{1}), "01 ac 02 02 01"},
		{"update 11=5, 12=NULL", update(11, []byte{5, 0, 0, 0}, 12, nil), "01 0b 05 05 00 00 00 0c 00"},
		{"update 12=200 x", update(12, bytes.Repeat([]byte("x"), 200)), "01 0c c9 01" + strings.Repeat("78", 200)},
		{"delete", AppendDelete(nil), "02"},
		{"reinsert 11=5, 12=hi", reinsert, "03 0b 05 05 00 00 00 0c 03 68 69"},
		{"reinsert of a key-only row", AppendUpdateHeader(nil, Reinsert), "03"},
	}
	for _, c := range cases {
		must.Equal(t, c.got, must.Hex(t, c.want), c.name)
		must.Do(t, c.got.Check(s), c.name)
	}
}

func TestCheckRefusesMalformedLists(t *testing.T) {
	s := specSchema(t)
	for name, list := range map[string]string{
		"empty":                        "",
		"kind 0":                       "00",
		"kind 4":                       "04",
		"bytes after a delete":         "02 0b",
		"update of nothing":            "01",
		"column without size":          "01 0b",
		"cut id":                       "01 ac",
		"cut size":                     "01 0c c9",
		"id of six bytes":              "01 8b 80 80 80 80 00 01",
		"id above 31 bits":             "01 ff ff ff ff 0f 01",
		"cell shorter than its length": "01 0c 04 68 69",
		"cell of 4 GiB":                "01 0c ff ff ff ff 0f 68",
		"NULL for NOT NULL":            "01 0b 00",
		"three bytes of an int32":      "01 0b 04 05 00 00",
		"key column":                   "01 0a 05 05 00 00 00",
		"second column cut":            "01 0c 00 0b",
		"cut reinsert":                 "03 0b 05 05",
	} {
		must.Fail(t, List(must.Hex(t, list)).Check(s), fault.ErrCorrupt, name)
	}
	for name, list := range map[string]string{"unknown column": "01 63 03 01 02",
		"duplicate column": "01 0c 00 0c 02 61"} {
		must.Do(t, List(must.Hex(t, list)).Check(s), name)
	}
}

func TestCheckRefusesMalformedArrays(t *testing.T) {
	s := makeSchema(t, 1, schema.Column{ID: 10, Name: "k", Type: schema.Int32},
		schema.Column{ID: 11, Name: "a", Type: schema.Array, Element: schema.Int16, Nullable: true},
		schema.Column{ID: 12, Name: "s", Type: schema.Array, Element: schema.String, Nullable: true})
	format := NewRowFormat(s)
	for cell, whole := range map[string]bool{"00 00": true, "02 00 02 05 00": true, "": false,
		"02 00 06 05 00 05 00": false, "02 00 03 05 00": false, "ff ff": false} {
		list := AppendColumn(AppendUpdateHeader(nil, Update), 11, append([]byte{}, must.Hex(t, cell)...))
		if err := List(list).Check(s); (err == nil) != whole || err != nil && !errors.Is(err, fault.ErrCorrupt) {
			t.Errorf("list with array %q: %v", cell, err)
		}
		row := format.AppendRow(nil, [][]byte{{1, 0, 0, 0}, append([]byte{}, must.Hex(t, cell)...), nil})
		if err := format.Check(row); (err == nil) != whole || err != nil && !errors.Is(err, fault.ErrCorrupt) {
			t.Errorf("row image with array %q: %v", cell, err)
		}
	}
	must.Fail(t, List(must.Hex(t, "01 0c 0a 01 00 01 ff ff ff 7f 61 61")).Check(s), fault.ErrCorrupt,
		"array whose string ends beyond it")
}

func TestFindReturnsTheLastValue(t *testing.T) {
	l := update(12, nil, 11, []byte{1, 0, 0, 0}, 12, []byte("z"), 11, []byte{2, 0, 0, 0}, 13, nil)
	cases := []struct {
		id   schema.ColumnID
		want []byte
		ok   bool
	}{{11, []byte{2, 0, 0, 0}, true}, {12, []byte("z"), true}, {13, nil, true}, {14, nil, false}}
	for _, c := range cases {
		if got, ok := l.Find(c.id); ok != c.ok || !sameCell(got, c.want) {
			t.Errorf("column %d: %q %t", c.id, got, ok)
		}
	}
	if _, ok := List(nil).Find(1); ok || List(nil).Kind() != 0 {
		t.Error("an empty list has a column or a kind")
	}
}

func TestListRoundTrip(t *testing.T) {
	type column struct {
		id   schema.ColumnID
		cell []byte
	}
	seedtest.Check(t, func(rt *rapid.T) {
		var want []column
		l := List(AppendUpdateHeader(nil, Update))
		for range rapid.IntRange(0, 5).Draw(rt, "columns") {
			c := column{id: schema.ColumnID(rapid.Int32Min(0).Draw(rt, "id"))}
			if rapid.Bool().Draw(rt, "present") {
				c.cell = make([]byte, rapid.SampledFrom([]int{0, 1, 126, 127, 128, 300}).Draw(rt, "size"))
			}
			l = AppendColumn(l, c.id, c.cell)
			want = append(want, c)
		}
		r := l.Columns()
		for _, c := range want {
			if id, cell, ok := r.Next(); !ok || id != c.id || !sameCell(cell, c.cell) {
				rt.Fatalf("got %d %x %t, want %d %x", id, cell, ok, c.id, c.cell)
			}
		}
		if _, _, ok := r.Next(); ok || r.Damaged() {
			rt.Fatal("the list has more columns than were written")
		}
	})
}

func FuzzListCheck(f *testing.F) {
	f.Add([]byte{1, 11, 5, 5, 0, 0, 0, 12, 0})
	fuzztest.Run(f, func(t *testing.T, b []byte) {
		s := specSchema(t)
		format := NewRowFormat(s)
		row := format.AppendRow(nil, [][]byte{{7, 0, 0, 0}, {1, 0, 0, 0}, []byte("s"), {1}})
		list := List(b)
		_ = list.String()
		_, _ = list.Find(12)
		if err := list.Check(s); err != nil {
			must.Fail(t, err, fault.ErrCorrupt)
			return
		}
		must.Do(t, format.Check(format.Apply(nil, row, list)), "image after", list)
	})
}
