package demo

import (
	"cmp"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/oribi-db/oribi"
	"github.com/oribi-db/oribi/batch"
	"github.com/oribi-db/oribi/internal/figures"
)

// readBack reopens the store read-only, and checks and explains its content.
func (s *show) readBack() (err error) {
	store, err := oribi.Open(s.dir, &oribi.Options{ReadOnly: true})
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, store.Close()) }()
	table, err := store.Table(tableName)
	if err != nil {
		return err
	}
	r := store.Recovery()
	s.page.title("Close and reopen")
	s.page.text("%s write batches had not been flushed to files yet; they were replayed from the log.",
		figures.Thousands(int64(r.Batches)))
	for _, part := range []func(*oribi.Table) error{s.readAsOf, s.versions, s.onDisk, s.explain} {
		if err := part(table); err != nil {
			return err
		}
	}
	return nil
}

// readAsOf reads the table as of several commits and compares each result with the expected tree.
func (s *show) readAsOf(table *oribi.Table) error {
	s.page.title("The table as it was")
	s.page.text("A read is as of a given timestamp, or of the newest state. Here the whole table is read as of some " +
		"commits, and each row is compared:")
	s.page.rows([]string{"as of commit", "rows", "matches"})
	for _, seq := range readBackAfter {
		want, oracle, err := s.expected(seq)
		if err != nil {
			return err
		}
		got, err := s.scan(table, seq)
		if err != nil {
			return err
		}
		if i := firstDifference(got, want); i >= 0 {
			return fmt.Errorf("demo: as of commit %d the table differs from %s at row %d of %d", seq, oracle, i,
				len(want))
		}
		s.page.rows([]string{fmt.Sprint(seq), figures.Thousands(int64(len(got))), oracle})
	}
	s.page.end()
	return nil
}

// expected returns the tree of a commit: the bundled one, or one computed from the commits with a
// map.
func (s *show) expected(seq int64) ([]file, string, error) {
	if slices.Contains(bundledTrees, seq) {
		files, err := loadTree(seq)
		return files, "the tree that git lists", err
	}
	return s.replayed(seq), "a map to which the commits were applied", nil
}

// replayed applies the commits up to one of them to a map.
func (s *show) replayed(seq int64) []file {
	tree := map[string]file{}
	for i := range s.commits {
		if s.commits[i].seq > seq {
			break
		}
		for _, ch := range s.commits[i].changes {
			if ch.kind == 'D' {
				delete(tree, ch.path)
			} else {
				tree[ch.path] = ch.file
			}
		}
	}
	return slices.SortedFunc(maps.Values(tree), func(a, b file) int { return strings.Compare(a.path, b.path) })
}

// scan reads the table as of a commit, in key order.
func (s *show) scan(table *oribi.Table, seq int64) ([]file, error) {
	var files []file
	scan := table.Scan(s.ctx, oribi.AsOf(s.stamps[seq]), oribi.Columns("path", "mode", "blob", "size"))
	for b, err := range scan.Batches() {
		if err != nil {
			return nil, err
		}
		sizes := batch.Values[int64](b.Columns[3])
		for i := b.Selection.Next(0); i >= 0; i = b.Selection.Next(i + 1) {
			files = append(files, file{string(b.Columns[0].Cell(i)), string(b.Columns[1].Cell(i)),
				string(b.Columns[2].Cell(i)), sizes[i]})
		}
	}
	return files, nil
}

// firstDifference returns the first index at which a and b differ; -1 if they are equal.
func firstDifference(a, b []file) int {
	for i := range max(len(a), len(b)) {
		if i >= len(a) || i >= len(b) || a[i] != b[i] {
			return i
		}
	}
	return -1
}

// versions prints one row as of several timestamps.
func (s *show) versions(table *oribi.Table) error {
	path, err := s.busiest(table, func(string) (int, error) { return 0, nil })
	if err != nil {
		return err
	}
	s.page.title("One row through time")
	s.page.text("The commits wrote %s versions of %s rows and deleted %s rows. The row that changed most often is "+
		"%s, with %d versions.",
		figures.Thousands(int64(s.counts['A']+s.counts['M'])), figures.Thousands(int64(len(s.touched))),
		figures.Thousands(int64(s.counts['D'])), path, s.touched[path])
	s.page.rows([]string{"as of commit", "size", "last changed by commit"})
	for _, seq := range readBackAfter {
		row, err := table.Get(s.ctx, path, oribi.AsOf(s.stamps[seq]), oribi.Columns("size", "seq"))
		switch {
		case errors.Is(err, oribi.ErrNotFound):
			s.page.rows([]string{fmt.Sprint(seq), "–", "absent"})
		case err != nil:
			return err
		default:
			s.page.rows([]string{fmt.Sprint(seq), fmt.Sprint(row["size"]), fmt.Sprint(row["seq"])})
		}
	}
	s.page.end()
	return nil
}

// busiest returns the path that changed most often among the existing paths with the highest rank.
func (s *show) busiest(table *oribi.Table, rank func(path string) (int, error)) (string, error) {
	live, err := s.scan(table, readBackAfter[len(readBackAfter)-1])
	if err != nil {
		return "", err
	}
	best, bestRank := "", -1
	for _, f := range live {
		r, err := rank(f.path)
		if err != nil {
			return "", err
		}
		if cmp.Or(cmp.Compare(r, bestRank), cmp.Compare(s.touched[f.path], s.touched[best])) > 0 {
			best, bestRank = f.path, r
		}
	}
	return best, nil
}

// onDisk prints what uses the disk space.
func (s *show) onDisk(table *oribi.Table) error {
	stats, err := table.Stats(true)
	if err != nil {
		return err
	}
	s.page.title("On disk")
	s.page.text("%s rows in %d rowsets. A rowset is a sorted set of rows: a file of values for each column, later "+
		"changes in separate files, "+
		"and a filter that excludes most absent keys. The newest changes are in memory (%s) and in the log.",
		figures.Thousands(int64(stats.LiveRows)), stats.RowSets, figures.Size(stats.MemBytes))
	s.page.rows([]string{"column", "bytes"})
	rest := stats.Bytes
	for _, c := range stats.Columns {
		s.page.rows([]string{c.Name, figures.Thousands(int64(c.Bytes))})
		rest -= c.Bytes
	}
	s.page.rows([]string{"versions, filters, indexes", figures.Thousands(int64(rest))})
	s.page.rows([]string{"all", figures.Thousands(int64(stats.Bytes))})
	s.page.end()
	return s.files()
}

// places are the parts of a store's directory, in the order in which they are printed.
var places = []struct{ name, what string }{
	{"data", "containers of the column files"}, {"wal", "log"},
	{"meta", "metadata: the tables and rowsets that the blocks belong to"}, {"", "identity, anchor, lock"},
}

// files counts the files of the store by directory.
func (s *show) files() error {
	count, bytes := map[string]int{}, map[string]int64{}
	err := filepath.WalkDir(s.dir, func(path string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() {
			return err
		}
		info, err := os.Lstat(path)
		if err != nil {
			return err
		}
		place := ""
		if in := filepath.Dir(path); in != filepath.Clean(s.dir) {
			place = filepath.Base(in)
		}
		count[place]++
		bytes[place] += info.Size()
		return nil
	})
	if err != nil {
		return err
	}
	s.page.rows([]string{"files", "bytes", "what"})
	for _, p := range places {
		s.page.rows([]string{figures.Thousands(int64(count[p.name])), figures.Thousands(int64(bytes[p.name])),
			strings.TrimSpace(p.name + " " + "(" + p.what + ")")})
	}
	s.page.end()
	return nil
}

// explain describes how a read finds a row; the example is one of those that need the most steps.
func (s *show) explain(table *oribi.Table) error {
	path, err := s.busiest(table, func(path string) (int, error) {
		trace, err := table.Explain(s.ctx, path, oribi.Columns())
		return len(trace.Steps), err
	})
	if err != nil {
		return err
	}
	trace, err := table.Explain(s.ctx, path)
	if err != nil {
		return err
	}
	row, err := table.Get(s.ctx, path)
	if err != nil {
		return err
	}
	s.page.title("How a read finds its row")
	s.page.line("  key %q", path)
	if trace.InMemory {
		s.page.line("  memory: found")
	} else {
		s.page.line("  memory: not found")
	}
	for _, step := range trace.Steps {
		where := fmt.Sprintf("  rowset %d, whose key range includes it:\n    ", step.RowSet)
		switch {
		case !step.Filter:
			s.page.line("%sthe filter excludes it; nothing else is read", where)
		case !step.Found:
			s.page.line("%sthe filter says maybe; the key index does not have it", where)
		case !step.Live:
			s.page.line("%sthe key index has it as row %d, which was deleted later", where, step.Row)
		default:
			s.page.line("%sthe filter says maybe; the key index has it as row %d", where, step.Row)
		}
	}
	s.page.line("  mode %v, blob %v, size %v, last changed by commit %v", row["mode"],
		row["blob"], row["size"], row["seq"])
	return nil
}
