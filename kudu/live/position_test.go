package live

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/oribi-db/oribi/internal/must"
	"github.com/oribi-db/oribi/kudu/client"
	"github.com/oribi-db/oribi/schema"
)

// A position is read as it was saved. A file with any other byte is refused.
func TestPositionsAreSavedAndChecked(t *testing.T) {
	name := filepath.Join(t.TempDir(), "copies", "p.json")
	file := PositionFile(name)
	if p, err := loadPosition(file); p != nil || err != nil {
		t.Fatalf("without a file: %v, %v", p, err)
	}
	p := position{Table: "t", Cluster: "c", Target: "k", From: 5, Key: "00ff", Done: 7, Written: 9, Open: true,
		Columns: map[uint32]uint32{0: 0, 12: 3}}
	must.Do(t, p.save(file))
	p.Done = 8
	must.Do(t, p.save(file))
	got := must.Get(loadPosition(file))(t)
	must.Equal(t, fmt.Sprint(*got), fmt.Sprint(p), "position")
	whole := must.Get(os.ReadFile(name))(t)
	for i := range whole[:len(whole)-1] {
		bad := append([]byte(nil), whole...)
		bad[i] ^= 1
		must.Do(t, os.WriteFile(name, bad, 0o600))
		_, err := loadPosition(file)
		must.Equal(t, errors.Is(err, ErrCorrupt), true, "byte", i, err)
	}
	must.Do(t, os.WriteFile(name, whole[:len(whole)/2], 0o600))
	must.Equal(t, errors.Is(must.Err(loadPosition(file)), ErrCorrupt), true, "half a file")
}

// One process makes a copy at a time.
func TestPositionsAreLocked(t *testing.T) {
	p := filePosition{filepath.Join(t.TempDir(), "p.json")}
	first := must.Get(p.lock())(t)
	must.Equal(t, errors.Is(must.Err(p.lock()), ErrLocked), true, "locked")
	must.Do(t, first.Close())
	must.Do(t, must.Get(p.lock())(t).Close())
}

func columns(names ...string) *schema.Schema {
	s := &schema.Schema{Keys: 1}
	for i, name := range names {
		c := schema.Column{ID: schema.ColumnID(i), Name: name, Type: schema.Int64, Nullable: i > 0, Key: i == 0}
		s.Columns = append(s.Columns, c)
	}
	made, err := schema.New(s.Columns)
	if err != nil {
		panic(err)
	}
	return made
}

// The columns of a target follow by ID, alteration by alteration: drops, then renames, then new columns.
// What a target shows is not asked for again.
func TestAlterationsFollowColumnsByID(t *testing.T) {
	for _, c := range []struct {
		name, known, target string // by ID: the ID of the target's column; its name
		steps               int
		adds, adopted       bool
	}{
		{"the same", "0:0 1:5 2:6", "0:id 5:a 6:b", 0, false, false},
		{"a new column", "0:0 1:5", "0:id 5:a", 1, true, false},
		{"a new column that is there", "0:0 1:5", "0:id 5:a 6:b", 0, false, true},
		{"a dropped column", "0:0 1:5 2:6 3:7", "0:id 5:a 6:b 7:c", 1, false, false},
		{"a dropped column that is gone", "0:0 1:5 2:6 3:7", "0:id 5:a 6:b", 0, false, false},
		{"a renamed column", "0:0 1:5 2:6", "0:id 5:z 6:b", 1, false, false},
		{"two renamed columns", "0:0 1:5 2:6", "0:id 5:y 6:z", 2, false, false},
		{"two columns that swap their names: one gives up its own", "0:0 1:5 2:6", "0:id 5:b 6:a", 1, false, false},
		{"one of them has given up its name", "0:0 1:5 2:6", "0:id 5:x 6:a", 1, false, false},
		{"dropped and added under one name: first dropped", "0:0 1:5 9:6", "0:id 5:a 6:b", 1, false, false},
		{"then added", "0:0 1:5 9:6", "0:id 5:a", 1, true, false},
		{"a column of others", "0:0 1:5 2:6", "0:id 5:a 6:b 7:other", 0, false, false},
		{"a column that others have replaced", "0:0 1:5 2:6", "0:id 5:a 8:b", 0, false, true},
		{"a column that others have dropped", "0:0 1:5 2:6", "0:id 5:a", 0, false, false},
	} {
		known := map[uint32]uint32{}
		for _, word := range strings.Fields(c.known) {
			known[uint32(word[0]-'0')] = uint32(word[2] - '0')
		}
		var there []schema.Column
		for _, word := range strings.Fields(c.target) {
			there = append(there, schema.Column{ID: schema.ColumnID(word[0] - '0'), Name: word[2:], Type: schema.Int64,
				Key: word[0] == '0', Nullable: word[0] != '0'})
		}
		n := alteration(columns("id", "a", "b"), known, must.Get(schema.New(there))(t))
		must.Equal(t, len(n.steps), c.steps, c.name)
		must.Equal(t, n.adds, c.adds, c.name, "adds")
		must.Equal(t, n.adopted, c.adopted, c.name, "adopted")
	}
}

func TestMismatchesAreNamed(t *testing.T) {
	base := columns("id", "a")
	other := func(change func(c *schema.Column)) *schema.Schema {
		s := columns("id", "a")
		list := append([]schema.Column(nil), s.Columns...)
		change(&list[1])
		return must.Get(schema.New(list))(t)
	}
	must.Do(t, mismatch(base, columns("id", "a", "more")))
	for want, to := range map[string]*schema.Schema{
		`column "a" is missing`:          columns("id", "b"),
		`column "a" is a int64`:          other(func(c *schema.Column) { c.Type = schema.Int32 }),
		`column "a" is nullable`:         other(func(c *schema.Column) { c.Nullable = false }),
		`the key has 1 columns`:          other(func(c *schema.Column) { c.Key, c.Nullable = true, false }),
		`column "b" is at the other end`: must.Get(schema.New(append(columns("id", "a").Columns, schema.Column{ID: 7, Name: "b", Type: schema.Int64})))(t),
	} {
		err := mismatch(base, to)
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%v, want %q", err, want)
		}
	}
}

func TestProposedPartitionsGrowWithRowsAndServers(t *testing.T) {
	for _, c := range []struct {
		rows    int64
		servers int
		buckets int
	}{{0, 0, 2}, {1000, 1, 2}, {1000, 3, 6}, {1_000_000_000, 3, 20}, {1 << 60, 3, 180}} {
		p := Propose([]string{"id"}, c.rows, c.servers)
		must.Equal(t, p.Hash[0].Buckets, c.buckets, "rows", c.rows, "servers", c.servers)
	}
	must.Equal(t, len(client.Partitioning{}.Hash), 0)
}
