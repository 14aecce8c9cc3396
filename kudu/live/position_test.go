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
		Columns: map[uint32]string{0: "id", 12: "n"}}
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

// The columns of a target follow by ID: each step is made once, also if it is asked for again.
func TestAlterationsFollowColumnsByID(t *testing.T) {
	for _, c := range []struct {
		name, known, target string
		steps               int
	}{
		{"the same", "0:id 1:a 2:b", "id a b", 0},
		{"a new column", "0:id 1:a", "id a", 1},
		{"a new column that is there", "0:id 1:a", "id a b", 0},
		{"a dropped column", "0:id 1:a 2:b 3:c", "id a b c", 1},
		{"a dropped column that is gone", "0:id 1:a 2:b 3:c", "id a b", 0},
		{"a renamed column", "0:id 1:z 2:b", "id z b", 1},
		{"a renamed column that has its name", "0:id 1:z 2:b", "id a b", 0},
		{"dropped and added under one name", "0:id 1:a 9:b", "id a b", 2},
		{"a column of others", "0:id 1:a 2:b", "id a b other", 0},
	} {
		known := map[uint32]string{}
		for _, word := range strings.Fields(c.known) {
			known[uint32(word[0]-'0')] = word[2:]
		}
		steps := alterations(columns("id", "a", "b"), known, columns(strings.Fields(c.target)...))
		must.Equal(t, len(steps), c.steps, c.name)
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
