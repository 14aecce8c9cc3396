package schema

import (
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/oribi-db/oribi/internal/fault"
	"github.com/oribi-db/oribi/internal/must"
)

func editable(t *testing.T) *Schema {
	t.Helper()
	s := must.Get(New([]Column{{ID: 3, Name: "k", Type: Int64}, {ID: 4, Name: "l", Type: String},
		{ID: 7, Name: "a", Type: Int32, Nullable: true},
		{ID: 5, Name: "b", Type: String, Default: []byte("new"), ReadDefault: []byte("old")}}, 2))(t)
	return s
}

// describe writes the columns as id:name=default/read default.
func describe(s *Schema) string {
	var out []string
	for _, c := range s.Columns {
		text := fmt.Sprintf("%d:%s", c.ID, c.Name)
		if c.Default != nil || c.ReadDefault != nil {
			text += fmt.Sprintf("=%s/%s", c.Default, c.ReadDefault)
		}
		out = append(out, text)
	}
	return strings.Join(out, " ")
}

func setDefault(v []byte) func(*Column) error {
	return func(c *Column) error { c.Default = v; return nil }
}

func TestEditorKeepsColumnIDs(t *testing.T) {
	cases := []struct {
		name string
		edit func(e *Editor) error
		want string
		next ColumnID
	}{
		{"nothing", func(e *Editor) error { return nil }, "3:k 4:l 7:a 5:b=new/old", 9},
		{"add", func(e *Editor) error {
			return e.Add(Column{ID: 77, Name: "c", Type: String, Default: []byte("x")})
		}, "3:k 4:l 7:a 5:b=new/old 9:c=x/x", 10},
		{"add without default", func(e *Editor) error {
			return e.Add(Column{Name: "c", Type: String, Nullable: true, ReadDefault: []byte("y")})
		}, "3:k 4:l 7:a 5:b=new/old 9:c", 10},
		{"drop", func(e *Editor) error { return e.Drop("a") }, "3:k 4:l 5:b=new/old", 9},
		{"drop and add again", func(e *Editor) error {
			return errors.Join(e.Drop("a"), e.Add(Column{Name: "a", Type: Int32, Nullable: true}))
		}, "3:k 4:l 5:b=new/old 9:a", 10},
		{"rename", func(e *Editor) error { return e.Rename("b", "c") }, "3:k 4:l 7:a 5:c=new/old", 9},
		{"rename a key column", func(e *Editor) error { return e.Rename("k", "key") }, "3:key 4:l 7:a 5:b=new/old", 9},
		{"swap names", func(e *Editor) error {
			return errors.Join(e.Rename("a", "t"), e.Rename("b", "a"), e.Rename("t", "b"))
		}, "3:k 4:l 7:b 5:a=new/old", 9},
		{"default", func(e *Editor) error {
			return e.Set("b", setDefault([]byte("newer")))
		}, "3:k 4:l 7:a 5:b=newer/old", 9},
		{"no default", func(e *Editor) error { return e.Set("b", setDefault(nil)) }, "3:k 4:l 7:a 5:b=/old", 9},
		{"the read default cannot be set", func(e *Editor) error {
			return e.Set("b", func(c *Column) error { c.ReadDefault, c.ID = []byte("z"), 70; return nil })
		}, "3:k 4:l 7:a 5:b=new/old", 9},
	}
	for _, c := range cases {
		s := editable(t)
		e := s.Edit(9)
		err := c.edit(e)
		got, err2 := e.Schema()
		if err != nil || err2 != nil {
			t.Errorf("%s: %v, %v", c.name, err, err2)
			continue
		}
		if describe(got) != c.want || e.NextID != c.next || got.Keys != 2 {
			t.Errorf("%s: got %s, next %d", c.name, describe(got), e.NextID)
		}
		must.Equal(t, describe(s), "3:k 4:l 7:a 5:b=new/old", c.name, "the original schema")
	}
}

func TestEditorRefusesInvalidAlterations(t *testing.T) {
	set := func(f func(c *Column)) func(e *Editor) error {
		return func(e *Editor) error { return e.Set("a", func(c *Column) error { f(c); return nil }) }
	}
	cases := []struct {
		name string
		edit func(e *Editor) error
		want error
	}{
		{"add an existing name", func(e *Editor) error {
			return e.Add(Column{Name: "a", Type: Int32, Nullable: true})
		}, fault.ErrExists},
		{"add NOT NULL without default", func(e *Editor) error {
			return e.Add(Column{Name: "c", Type: Int32})
		}, fault.ErrSchema},
		{"add a default of another type", func(e *Editor) error {
			return e.Add(Column{Name: "c", Type: Int32, Default: []byte("x")})
		}, fault.ErrSchema},
		{"add an unknown type", func(e *Editor) error {
			return e.Add(Column{Name: "c", Type: 99, Nullable: true})
		}, fault.ErrSchema},
		{"add an encoding that does not fit", func(e *Editor) error {
			return e.Add(Column{Name: "c", Type: Int32, Nullable: true, Encoding: Prefix})
		}, fault.ErrSchema},
		{"add a bad name", func(e *Editor) error {
			return e.Add(Column{Name: "", Type: Int32, Nullable: true})
		}, fault.ErrSchema},
		{"add after the last id", func(e *Editor) error {
			e.NextID = 1<<31 - 1
			return e.Add(Column{Name: "c", Type: Int32, Nullable: true})
		}, fault.ErrSchema},
		{"drop a key column", func(e *Editor) error { return e.Drop("l") }, fault.ErrSchema},
		{"drop a missing column", func(e *Editor) error { return e.Drop("c") }, fault.ErrNoColumn},
		{"drop twice", func(e *Editor) error { return errors.Join(e.Drop("a"), e.Drop("a")) }, fault.ErrNoColumn},
		{"rename a missing column", func(e *Editor) error { return e.Rename("c", "d") }, fault.ErrNoColumn},
		{"rename to an existing name", func(e *Editor) error { return e.Rename("a", "b") }, fault.ErrExists},
		{"rename to the name of a key column", func(e *Editor) error { return e.Rename("a", "k") }, fault.ErrExists},
		{"rename to a bad name", func(e *Editor) error { return e.Rename("a", "\xff") }, fault.ErrSchema},
		{"rename to a reserved name", func(e *Editor) error {
			return e.Rename("a", AutoIncrementName)
		}, fault.ErrSchema},
		{"a default for the key", func(e *Editor) error {
			return e.Set("k", setDefault(make([]byte, 8)))
		}, fault.ErrSchema},
		{"a default of another width", func(e *Editor) error {
			return e.Set("a", setDefault(make([]byte, 8)))
		}, fault.ErrSchema},
		{"set a missing column", func(e *Editor) error { return e.Set("c", setDefault(nil)) }, fault.ErrNoColumn},
		{"an encoding that does not fit", set(func(c *Column) { c.Encoding = Prefix }), fault.ErrSchema},
		{"an unknown codec", set(func(c *Column) { c.Compression = 9 }), fault.ErrSchema},
		{"a block size out of bounds", set(func(c *Column) { c.BlockBytes = 1 }), fault.ErrSchema},
		{"a long comment", set(func(c *Column) { c.Comment = strings.Repeat("x", 257) }), fault.ErrSchema},
		{"an immutable key", func(e *Editor) error {
			return e.Set("k", func(c *Column) error {
				c.Immutable = true
				return nil
			})
		}, fault.ErrSchema},
		{"another type", set(func(c *Column) { c.Type = Int64 }), fault.ErrSchema},
		{"NOT NULL", set(func(c *Column) { c.Nullable = false }), fault.ErrSchema},
	}
	for _, c := range cases {
		s := editable(t)
		e := s.Edit(9)
		must.Fail(t, c.edit(e), c.want, c.name)
		must.Equal(t, describe(s), "3:k 4:l 7:a 5:b=new/old", c.name, "the original schema")
	}
	e := editable(t).Edit(9)
	for i := range MaxColumns {
		must.Do(t, e.Add(Column{Name: fmt.Sprint("c", i), Type: Bool, Nullable: true}))
	}
	must.Fail(t, must.Err(e.Schema()), fault.ErrSchema, MaxColumns+4, "columns")
}
