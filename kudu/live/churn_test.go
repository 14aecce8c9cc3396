package live

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"

	"github.com/oribi-db/oribi"
	"github.com/oribi-db/oribi/schema"
)

// churner writes and alters a table of a store at random.
type churner struct {
	r     *rand.Rand
	s     *oribi.Store
	table *oribi.Table
	keys  int // how many keys there are
	added int // columns
}

// newChurner makes a table of some columns. Some tables have an immutable column.
func newChurner(r *rand.Rand, s *oribi.Store, name string, keys int) (*churner, error) {
	columns, err := schema.New([]schema.Column{
		{Name: "host", Type: schema.String, Key: true},
		{Name: "n", Type: schema.Int32, Key: true},
		{Name: "v", Type: schema.Int64, Nullable: true},
		{Name: "note", Type: schema.String, Nullable: true},
		{Name: "born", Type: schema.Int32, Immutable: r.IntN(3) == 0},
	}, 2)
	if err != nil {
		return nil, err
	}
	c := &churner{r: r, s: s, keys: keys}
	c.table, err = s.CreateTable(name, columns)
	return c, err
}

// cell returns a random value of a column.
func (c *churner) cell(column *schema.Column) any {
	switch {
	case column.Nullable && c.r.IntN(5) == 0:
		return nil
	case column.Type == schema.String:
		return fmt.Sprintf("%.*s", c.r.IntN(30), "abcdefghijklmnopqrstuvwxyz0123")
	}
	return c.r.IntN(4) // often what it was
}

func (c *churner) key() oribi.Row {
	k := c.r.IntN(c.keys)
	return oribi.Row{"host": fmt.Sprint("host-", k%7), "n": k / 7}
}

// write commits a batch of n operations.
func (c *churner) write(ctx context.Context, n int) error {
	s := c.table.Schema()
	b := c.s.NewBatch()
	for range n {
		row := c.key()
		if c.r.IntN(3) == 0 {
			b.DeleteIgnore(c.table, row)
			continue
		}
		fresh := false
		for i := s.Keys; i < len(s.Columns); i++ {
			row[s.Columns[i].Name] = c.cell(&s.Columns[i])
			fresh = fresh || s.Columns[i].Immutable
		}
		if fresh {
			b.DeleteIgnore(c.table, oribi.Row{"host": row["host"], "n": row["n"]})
		}
		b.Upsert(c.table, row)
	}
	_, err := b.Commit(ctx, oribi.NoSync)
	return err
}

// alter makes an alteration.
func (c *churner) alter(ctx context.Context) error {
	var more []string
	s := c.table.Schema()
	for i := range s.Columns {
		if name := s.Columns[i].Name; i > s.Keys && !s.Columns[i].Immutable && name != "born" {
			more = append(more, name)
		}
	}
	one := func() string { return more[c.r.IntN(len(more))] }
	add := func(name string) oribi.Alteration {
		if c.r.IntN(2) == 0 {
			return oribi.AddColumn(schema.Column{Name: name, Type: schema.Int32}, int32(c.r.IntN(3)))
		}
		return oribi.AddColumn(schema.Column{Name: name, Type: schema.String, Nullable: true})
	}
	switch kind := c.r.IntN(6); {
	case len(more) < 3 || kind == 0 && len(more) < 6:
		c.added++
		return c.table.Alter(ctx, add(fmt.Sprint("more", c.added)))
	case kind == 1:
		c.added++
		return c.table.Alter(ctx, oribi.RenameColumn(one(), fmt.Sprint("other", c.added)))
	case kind == 2:
		return c.table.Alter(ctx, oribi.DropColumn(one()))
	case kind == 3:
		name := one()
		return c.table.Alter(ctx, oribi.DropColumn(name), add(name))
	case kind == 4: // two columns change their names
		a, b := one(), one()
		if a == b {
			return nil
		}
		return c.table.Alter(ctx, oribi.RenameColumn(a, "tmp"), oribi.RenameColumn(b, a), oribi.RenameColumn("tmp", b))
	}
	name := one()
	if i := s.Index(name); s.Columns[i].Type == schema.Int32 {
		return c.table.Alter(ctx, oribi.SetDefault(name, int32(c.r.IntN(9))))
	}
	return c.table.Alter(ctx, oribi.SetDefault(name, "default"))
}

// step does something.
func (c *churner) step(ctx context.Context, alters bool) error {
	switch k := c.r.IntN(100); {
	case k == 0:
		_, err := c.table.Truncate(ctx)
		return err
	case k < 4 && alters:
		err := c.alter(ctx)
		if errors.Is(err, context.Canceled) {
			return err
		} else if err != nil {
			return fmt.Errorf("alter: %w", err)
		}
		return nil
	}
	return c.write(ctx, 1+c.r.IntN(40))
}
