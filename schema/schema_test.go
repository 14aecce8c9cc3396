package schema

import (
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/oribi-db/oribi/internal/fault"
	"github.com/oribi-db/oribi/internal/must"
)

// column returns a valid column with the given name, modified by change unless that is nil.
func column(name string, change func(c *Column)) Column {
	c := Column{Name: name, Type: Int32}
	if change != nil {
		change(&c)
	}
	return c
}

// bad returns the columns of a valid key and of one column that change makes invalid.
func bad(change func(c *Column)) []Column {
	return []Column{column("key", nil), column("culprit", change)}
}

func many(n int) []Column {
	columns := make([]Column, n)
	for i := range columns {
		columns[i] = column(fmt.Sprint("c", i), nil)
	}
	return columns
}

func TestNewRefusesInvalidSchemas(t *testing.T) {
	tests := []struct {
		name    string
		columns []Column
		keys    int
		want    string // in the error
	}{
		{"no columns", nil, 1, "1 to 300 columns"},
		{"too many columns", many(301), 1, "1 to 300 columns"},
		{"no key", many(2), 0, "at least one key"},
		{"more keys than columns", many(2), 3, "key"},
		{"name twice", append(many(2), column("c1", nil)), 1, `"c1"`},
		{"empty name", []Column{column("key", nil), column("", nil)}, 1, "empty"},
		{"name of 257 bytes", []Column{column("key", nil), column(strings.Repeat("n", 257), nil)}, 1, "nnnnn"},
		{"NUL in a name", []Column{column("key", nil), column("cul\x00prit", nil)}, 1, "prit"},
		{"name that is not UTF-8", []Column{column("key", nil), column("culprit\xff", nil)}, 1, "culprit"},
		{"name of the auto-incrementing column", []Column{column(AutoIncrementName, nil)}, 1, `"auto_incrementing_id"`},
		{"auto-incrementing under another name", []Column{column("culprit", func(c *Column) {
			c.Type, c.AutoIncrement = Int64, true
		})}, 1, `"culprit"`},
		{"auto-incrementing string", []Column{column(AutoIncrementName, func(c *Column) {
			c.Type, c.AutoIncrement = String, true
		})}, 1, `"auto_incrementing_id"`},
		{"auto-incrementing without the key", []Column{column("key", nil), column(AutoIncrementName, func(c *Column) {
			c.Type, c.AutoIncrement = Int64, true
		})}, 1,
			`"auto_incrementing_id"`},
		{"negative id", bad(func(c *Column) { c.ID = -1 }), 1, `"culprit"`},
		{"id twice", []Column{column("key", func(c *Column) {
			c.ID = 7
		}), column("culprit", func(c *Column) { c.ID = 7 })}, 1, `"culprit"`},
		{"type without a number", bad(func(c *Column) { c.Type = 18 }), 1, `"culprit"`},
		{"type above all", bad(func(c *Column) { c.Type = 22 }), 1, `"culprit"`},
		{"arrays of arrays", bad(func(c *Column) { c.Type, c.Element = Array, Array }), 1, `"culprit"`},
		{"arrays of no type", bad(func(c *Column) { c.Type, c.Element = Array, 18 }), 1, `"culprit"`},
		{"arrays of int128", bad(func(c *Column) { c.Type, c.Element = Array, Int128 }), 1, `"culprit"`},
		{"arrays of wide decimals", bad(func(c *Column) {
			c.Type, c.Element, c.Precision = Array, Decimal128, 20
		}), 1, `"culprit"`},
		{"array in the key", bad(func(c *Column) { c.Type, c.Element = Array, Int32 }), 2, `"culprit"`},
		{"elements of a single value", bad(func(c *Column) { c.Element = Int32 }), 1, `"culprit"`},
		{"encoding that does not fit the elements", bad(func(c *Column) {
			c.Type, c.Element, c.Encoding = Array, Int32, Dictionary
		}), 1, `"culprit"`},
		{"array of varchars without length", bad(func(c *Column) {
			c.Type, c.Element = Array, Varchar
		}), 1, `"culprit"`},
		{"default that is not an array", bad(func(c *Column) {
			c.Type, c.Element, c.Default = Array, Int32, []byte{1, 0, 1, 5}
		}), 1, `"culprit"`},
		{"negative type", bad(func(c *Column) { c.Type = -1 }), 1, `"culprit"`},
		{"nullable key", bad(func(c *Column) { c.Nullable = true }), 2, `"culprit"`},
		{"bool in the key", bad(func(c *Column) { c.Type = Bool }), 2, `"culprit"`},
		{"float in the key", bad(func(c *Column) { c.Type = Float }), 2, `"culprit"`},
		{"double in the key", bad(func(c *Column) { c.Type = Double }), 2, `"culprit"`},
		{"default of a key", bad(func(c *Column) { c.Default = make([]byte, 4) }), 2, `"culprit"`},
		{"default too short", bad(func(c *Column) { c.Default = make([]byte, 3) }), 1, `"culprit"`},
		{"default too long", bad(func(c *Column) { c.Default = make([]byte, 5) }), 1, `"culprit"`},
		{"unknown encoding", bad(func(c *Column) { c.Encoding = 3 }), 1, `"culprit"`},
		{"unknown compression", bad(func(c *Column) { c.Compression = 5 }), 1, `"culprit"`},
		{"negative compression", bad(func(c *Column) { c.Compression = -1 }), 1, `"culprit"`},
		{"block size too small", bad(func(c *Column) { c.BlockBytes = 511 }), 1, `"culprit"`},
		{"block size too large", bad(func(c *Column) { c.BlockBytes = 16<<20 + 1 }), 1, `"culprit"`},
		{"negative block size", bad(func(c *Column) { c.BlockBytes = -1 }), 1, `"culprit"`},
		{"comment of 257 bytes", bad(func(c *Column) { c.Comment = strings.Repeat("x", 257) }), 1, `"culprit"`},
		{"comment that is not UTF-8", bad(func(c *Column) { c.Comment = "\xff" }), 1, `"culprit"`},
		{"varchar without length", bad(func(c *Column) { c.Type = Varchar }), 1, `"culprit"`},
		{"varchar too long", bad(func(c *Column) { c.Type, c.Length = Varchar, 65536 }), 1, `"culprit"`},
		{"decimal without precision", bad(func(c *Column) { c.Type = Decimal32 }), 1, `"culprit"`},
		{"decimal of 39 digits", bad(func(c *Column) { c.Type, c.Precision = Decimal128, 39 }), 1, `"culprit"`},
		{"scale above precision", bad(func(c *Column) {
			c.Type, c.Precision, c.Scale = Decimal32, 5, 6
		}), 1, `"culprit"`},
		{"negative scale", bad(func(c *Column) { c.Type, c.Precision, c.Scale = Decimal32, 5, -1 }), 1, `"culprit"`},
		{"decimal stored too narrow", bad(func(c *Column) { c.Type, c.Precision = Decimal32, 10 }), 1, `"culprit"`},
		{"decimal stored too wide", bad(func(c *Column) { c.Type, c.Precision = Decimal64, 9 }), 1, `"culprit"`},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			_, err := New(test.columns, test.keys)
			must.Fail(t, err, fault.ErrSchema)
			must.Contain(t, err.Error(), test.want)
		})
	}
}

func TestNewAcceptsLimits(t *testing.T) {
	for name, columns := range map[string][]Column{
		"300 columns":       many(300),
		"name of 256 bytes": {column(strings.Repeat("n", 256), nil)},
		"name in UTF-8":     {column("größe ☃", nil)},
		"longest varchar":   {column("v", func(c *Column) { c.Type, c.Length = Varchar, 65535 })},
		"shortest varchar":  {column("v", func(c *Column) { c.Type, c.Length = Varchar, 1 })},
		"widest decimal":    {column("d", func(c *Column) { c.Type, c.Precision, c.Scale = Decimal128, 38, 38 })},
		"block sizes": {column("a", func(c *Column) {
			c.BlockBytes = 512
		}), column("b", func(c *Column) { c.BlockBytes = 16 << 20 })},
		"empty default": bad(func(c *Column) { c.Type, c.Default = String, []byte{} }),
		"all are key":   many(300),
		"ids in any order": {column("a", func(c *Column) {
			c.ID = 12
		}), column("b", func(c *Column) { c.ID = 3 }), column("c", nil)},
	} {
		keys := 1
		if name == "all are key" {
			keys = len(columns)
		}
		must.Do(t, must.Err(New(columns, keys)), name)
	}
}

func TestIndexByNameAndID(t *testing.T) {
	s := must.Get(
		New([]Column{column("a", func(c *Column) { c.ID = 12 }), column("b", func(c *Column) { c.ID = 3 })}, 1))(t)
	if s.Index("a") != 0 || s.Index("b") != 1 || s.Index("A") != -1 {
		t.Errorf("by name: a %d, b %d, A %d", s.Index("a"), s.Index("b"), s.Index("A"))
	}
	if s.IndexID(12) != 0 || s.IndexID(3) != 1 || s.IndexID(0) != -1 {
		t.Errorf("by id: 12 %d, 3 %d, 0 %d", s.IndexID(12), s.IndexID(3), s.IndexID(0))
	}
	must.Equal(t, fmt.Sprint(must.Get(s.Project([]string{"b", "a", "b"}))(t)), "[1 0 1]", "projection")
	if _, err := s.Project([]string{"a", "nowhere"}); !errors.Is(err, fault.ErrNoColumn) ||
		!strings.Contains(err.Error(), `"nowhere"`) {
		t.Errorf("projection of a missing column: %v", err)
	}
}

// New assigns IDs only if no column has one, and it does not change the caller's slice.
func TestNewNumbersColumnsWithoutIDs(t *testing.T) {
	columns := many(3)
	s := must.Get(New(columns, 1))(t)
	for i := range s.Columns {
		must.Equal(t, s.Columns[i].ID, ColumnID(i), "column", i, "id")
		must.Equal(t, columns[i].ID, 0, "column", i, "the caller's")
	}
	columns[0].Name = "changed"
	columns[0].ID = 5
	must.Equal(t, s.Columns[0].Name, "c0", "the schema changes with the caller's list")
	must.Refuse(t, must.Err(New(columns, 1)), "ids 5, 0, 0 were taken")
}

// The key is what the columns say, or the first ones of a number that agrees with them.
func TestKeyColumns(t *testing.T) {
	columns := func(keys string) (list []Column) { // k for a key column
		for i, c := range keys {
			list = append(list, Column{Name: fmt.Sprint("c", i), Type: Int32, Key: c == 'k'})
		}
		return list
	}
	for _, test := range []struct {
		columns string
		given   []int
		want    string // the key columns, or a part of the error
	}{
		{"k", nil, "k"}, {"kk--", nil, "kk--"}, {"kkk", nil, "kkk"},
		{"---", []int{2}, "kk-"}, {"k--", []int{2}, "kk-"}, {"kk-", []int{2}, "kk-"},
		{"---", nil, "set its Key"}, {"---", []int{0}, "set its Key"}, {"---", []int{4}, "set its Key"},
		{"-k-", nil, `"c1"`}, {"k-k", []int{3}, `"c2"`}, {"kk-", []int{1}, "[1]"}, {"k--", []int{1, 1}, "[1 1]"},
	} {
		in := columns(test.columns)
		s, err := New(in, test.given...)
		if strings.Trim(test.want, "k-") != "" {
			must.Fail(t, err, fault.ErrSchema, test)
			must.Contain(t, err.Error(), test.want, test)
			continue
		}
		must.Do(t, err, test)
		must.Equal(t, in, columns(test.columns), "the caller's")
		must.Equal(t, s.Keys, strings.Count(test.want, "k"), test)
		for i := range s.Columns {
			must.Equal(t, s.Columns[i].Key, test.want[i] == 'k', test, i)
		}
	}
	e := must.Get(New(columns("k-")))(t).Edit(2)
	must.Fail(t, e.Add(Column{Name: "x", Type: Int32, Key: true, Default: make([]byte, 4)}), fault.ErrSchema)
	must.Do(t, e.Set("c1", func(c *Column) error { c.Key = true; return nil }))
	must.Equal(t, must.Get(e.Schema())(t).Columns[1].Key, false, "Set changed the key")
}
