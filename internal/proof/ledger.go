package main

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
)

// The ledger is a Markdown page with one table, which this program reads and writes. The text
// before and after the table is not changed. Two campaigns must not write one ledger concurrently.
const (
	tableHead = "| commit | proof | target | seeds | count | result |"
	tableLine = "|---|---|---|---|---|---|"
	noFailure = "no failure"
	fails     = "fails: "
)

// newLedger is the text before the table of a new ledger.
const newLedger = `# Campaigns

Each row summarizes the campaigns at one commit. docs/safety.md describes them.

`

// row is the work done at one commit by one proof, for one target if the proof has several.
type row struct {
	commit, proof, target string
	seeds                 spans
	counts                counts
	failures              []string // such as "seed 17"; empty if there was no failure
}

func (r *row) sameKey(o *row) bool {
	return r.commit == o.commit && r.proof == o.proof && r.target == o.target
}

// merge adds the work of another row of the same key.
func (r *row) merge(o *row) {
	r.seeds, r.counts = r.seeds.plus(o.seeds), r.counts.plus(o.counts)
	for _, f := range o.failures {
		if !slices.Contains(r.failures, f) {
			r.failures = append(r.failures, f)
		}
	}
}

func (r *row) String() string {
	result := noFailure
	if len(r.failures) > 0 {
		result = fails + strings.Join(r.failures, ", ")
	}
	return "| " +
		strings.Join([]string{r.commit, r.proof, r.target, r.seeds.String(), r.counts.String(), result}, " | ") + " |"
}

func parseRow(line string) (r row, err error) {
	cells := strings.Split(strings.TrimSpace(line), "|")
	if len(cells) != 8 || cells[0] != "" || cells[7] != "" {
		return r, fmt.Errorf("not a row of six cells: %q", line)
	}
	for i := range cells {
		cells[i] = strings.TrimSpace(cells[i])
	}
	r.commit, r.proof, r.target = cells[1], cells[2], cells[3]
	if r.seeds, err = parseSpans(cells[4]); err != nil {
		return r, err
	}
	if cells[5] != "" {
		if r.counts, err = parseCounts(cells[5]); err != nil {
			return r, err
		}
	}
	if list, failed := strings.CutPrefix(cells[6], fails); failed {
		r.failures = strings.Split(list, ", ")
	} else if cells[6] != noFailure {
		return r, fmt.Errorf("invalid result %q", cells[6])
	}
	return r, nil
}

// parseLedger splits a page into the text before the table, its rows, and the text after it.
func parseLedger(page string) (before string, rows []row, behind string, err error) {
	before, rest, found := strings.Cut(page, tableHead+"\n"+tableLine+"\n")
	if !found {
		return "", nil, "", fmt.Errorf("no table with the header %q", tableHead)
	}
	for strings.HasPrefix(rest, "|") {
		line, more, _ := strings.Cut(rest, "\n")
		r, err := parseRow(line)
		if err != nil {
			return "", nil, "", err
		}
		rows, rest = append(rows, r), more
	}
	return before, rows, rest, nil
}

func loadLedger(name string) (before string, rows []row, behind string, err error) {
	page, err := os.ReadFile(name)
	if errors.Is(err, fs.ErrNotExist) {
		return newLedger, nil, "", nil
	}
	if err == nil {
		before, rows, behind, err = parseLedger(strings.ReplaceAll(string(page), "\r\n", "\n"))
	}
	if err != nil {
		err = fmt.Errorf("ledger %s: %w", name, err)
	}
	return before, rows, behind, err
}

// readLedger returns the rows of a ledger, or none if the file does not exist.
func readLedger(name string) ([]row, error) {
	_, rows, _, err := loadLedger(name)
	return rows, err
}

// addToLedger merges a row into the ledger and replaces the file atomically.
func addToLedger(name string, r row) error {
	before, rows, behind, err := loadLedger(name)
	if err != nil {
		return err
	}
	if i := slices.IndexFunc(rows, func(have row) bool { return have.sameKey(&r) }); i >= 0 {
		rows[i].merge(&r)
	} else {
		rows = append(rows, r)
	}
	var b strings.Builder
	fmt.Fprintf(&b, "%s%s\n%s\n", before, tableHead, tableLine)
	for i := range rows {
		fmt.Fprintln(&b, &rows[i])
	}
	b.WriteString(behind)
	if err := os.MkdirAll(filepath.Dir(name), 0o777); err != nil {
		return err
	}
	f, err := os.CreateTemp(filepath.Dir(name), ".ledger-*")
	if err != nil {
		return err
	}
	_, err = f.WriteString(b.String())
	err = errors.Join(err, f.Chmod(0o644), f.Close())
	if err == nil {
		err = os.Rename(f.Name(), name)
	}
	if err != nil {
		os.Remove(f.Name())
	}
	return err
}
