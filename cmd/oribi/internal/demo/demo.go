// Package demo shows a newcomer what a store does, on real input: the history of a source tree, one
// write batch per commit. Every number that it prints is counted or measured in the run.
package demo

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"slices"
	"strings"
	"time"

	"github.com/oribi-db/oribi"
	"github.com/oribi-db/oribi/internal/figures"
	"github.com/oribi-db/oribi/mvcc"
	"github.com/oribi-db/oribi/schema"
)

const tableName = "tree"

// columns of the table: a row is a file; seq is the number of the commit that last changed it.
var columns = []schema.Column{
	{ID: 0, Name: "path", Type: schema.String},
	{ID: 1, Name: "mode", Type: schema.String},
	{ID: 2, Name: "blob", Type: schema.String},
	{ID: 3, Name: "size", Type: schema.Int64},
	{ID: 4, Name: "seq", Type: schema.Int32},
}

// What happens after which commits. The last commits stay in memory and in the log, so that the
// next opening replays them.
var (
	flushAfter    = []int64{1000, 2000, 3000, 4000}
	compactAfter  = int64(3000)
	readBackAfter = []int64{1, 1000, 2500, 5000}
	bundledTrees  = []int64{1000, 5000}
)

// show is one run of the demonstration.
type show struct {
	ctx     context.Context
	page    page
	dir     string
	kept    bool // the store is not removed
	commits []commit
	stamps  map[int64]mvcc.Timestamp // of commits that are read back
	counts  map[byte]int             // changes applied, by kind
	touched map[string]int           // number of changes of each path
}

// Run creates a store in dir, which is missing or empty, fills it, reads it back, checks it, and
// prints each step to out. If dir is empty, the store is created in a temporary directory and
// removed at the end.
func Run(ctx context.Context, out io.Writer, dir string) (err error) {
	s := &show{ctx: ctx, page: page{out: out}, dir: dir, kept: dir != "",
		stamps: map[int64]mvcc.Timestamp{}, counts: map[byte]int{}, touched: map[string]int{}}
	if !s.kept {
		if s.dir, err = os.MkdirTemp("", "oribi-demo-"); err != nil {
			return err
		}
		defer func() { err = errors.Join(err, os.RemoveAll(s.dir)) }()
	}
	if s.commits, err = loadHistory(); err != nil {
		return fmt.Errorf("demo: bundled history: %w", err)
	}
	for _, part := range []func() error{s.fill, s.readBack, s.next} {
		if err := part(); err != nil {
			return err
		}
		if s.page.err != nil {
			return s.page.err
		}
	}
	return nil
}

// fill creates the store and applies the commits.
func (s *show) fill() (err error) {
	store, err := oribi.Open(s.dir, &oribi.Options{ErrorIfExists: true, History: oribi.HistoryForever, Manual: true})
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, store.Close()) }()
	sch, err := schema.New(columns, 1)
	if err != nil {
		return err
	}
	table, err := store.CreateTable(tableName, sch)
	if err != nil {
		return err
	}
	s.page.title("A source tree as a table")
	s.page.text("The store is in %s. Its table %q has a row for each file of a source tree: path (the key), mode, "+
		"blob, size, "+
		"and seq, the number of the commit that last changed the row. The input is real: the first %s commits of "+
		"Apache Kudu's "+
		"repository. Each commit is one write batch: readers see all of it or none of it.",
		s.dir, tableName, figures.Thousands(int64(len(s.commits))))
	s.page.rows([]string{"commits", "inserts", "updates", "deletes", "rows", "then (rowsets, written)"})
	began := time.Now()
	if err := s.applyAll(store, table); err != nil {
		return err
	}
	took := time.Since(began)
	total := s.counts['A'] + s.counts['M'] + s.counts['D']
	s.page.end()
	s.page.text("%s changes in %s commits took %s, including flushes and a compaction. The store keeps every version "+
		"of every row for as "+
		"long as configured (here: forever). The batches were committed without waiting for the disk each time; "+
		"closing the store makes the last ones durable.",
		figures.Thousands(int64(total)), figures.Thousands(int64(len(s.commits))), took.Round(time.Millisecond))
	return nil
}

// applyAll applies the commits in order, with a flush or a compaction where one is due, and prints
// a line after each of those.
func (s *show) applyAll(store *oribi.Store, table *oribi.Table) error {
	b := store.NewBatch()
	stretch := map[byte]int{}
	first := s.commits[0].seq
	for i := range s.commits {
		c := &s.commits[i]
		c.add(b, table)
		ts, err := b.Commit(s.ctx, oribi.NoSync)
		if err != nil {
			return fmt.Errorf("commit %d: %w", c.seq, err)
		}
		if slices.Contains(readBackAfter, c.seq) {
			s.stamps[c.seq] = ts
		}
		for _, ch := range c.changes {
			stretch[ch.kind]++
			s.counts[ch.kind]++
			s.touched[ch.path]++
		}
		if !slices.Contains(flushAfter, c.seq) && i < len(s.commits)-1 {
			continue
		}
		did, err := s.tend(table, c.seq)
		if err != nil {
			return err
		}
		rows, err := table.Count(s.ctx)
		if err != nil {
			return err
		}
		s.page.rows([]string{fmt.Sprintf("%d–%d", first, c.seq), figures.Thousands(int64(stretch['A'])),
			figures.Thousands(int64(stretch['M'])), figures.Thousands(int64(stretch['D'])),
			figures.Thousands(int64(rows)), did})
		clear(stretch)
		first = c.seq + 1
	}
	return nil
}

// tend runs what is due after a commit and describes it.
func (s *show) tend(table *oribi.Table, seq int64) (string, error) {
	what, do := "flush", table.FlushResult
	switch {
	case seq == compactAfter:
		what, do = "flush, merge", table.CompactResult
	case !slices.Contains(flushAfter, seq):
		return "left in memory and log", nil
	}
	r, err := do(s.ctx)
	if err != nil {
		return "", fmt.Errorf("%s: %w", what, err)
	}
	return fmt.Sprintf("%s: %d → %d, %s", what, r.RowSetsBefore, r.RowSetsAfter, figures.Size(r.BytesWritten)), nil
}

// next prints three commands to try.
func (s *show) next() error {
	s.page.title("Where to look next")
	if !s.kept {
		s.page.text("This store is removed now. To keep one, run the demo with a directory and query it:")
		s.page.line("  oribi demo DIR")
		s.page.line("  oribi table history DIR %s CMakeLists.txt", tableName)
		s.page.line("  oribi table count DIR %s --by mode", tableName)
		return s.page.err
	}
	s.page.text("The store is kept in %s. Query it; the last command reads the table as of commit %d:", s.dir, askAfter)
	dir := shellWord(s.dir)
	s.page.line("  oribi table scan %s %s --columns path,size --where \"size > 200000\"", dir, tableName)
	s.page.line("  oribi table get %s %s CMakeLists.txt", dir, tableName)
	s.page.line("  oribi table count %s %s --as-of %d", dir, tableName, uint64(s.stamps[askAfter]))
	return s.page.err
}

// askAfter is the commit whose timestamp is printed; it is one of readBackAfter.
const askAfter = 1000

// shellWord quotes text as one word for a shell.
func shellWord(text string) string {
	plain := func(c rune) bool {
		return c >= 'a' && c <= 'z' || c >= 'A' && c <= 'Z' || c >= '0' && c <= '9' ||
			strings.ContainsRune("/._-+:@%,=", c)
	}
	if text != "" && strings.IndexFunc(text, func(c rune) bool { return !plain(c) }) < 0 {
		return text
	}
	return "'" + strings.ReplaceAll(text, "'", `'\''`) + "'"
}
