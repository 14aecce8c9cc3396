package kill

import (
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/oribi-db/oribi/internal/prooftest/files"
	"github.com/oribi-db/oribi/vfs"
)

// killRun describes the changes that a process was to make and those that it acknowledged.
type killRun struct {
	batches []killEvent // of apply, in order
	stamps  []uint64    // acknowledged timestamps, of a prefix of batches

	rows killEvent // of a load into table b, in the order of the file
	per  int       // rows per batch of the load; 0 without a load
	all  bool      // the load completed

	scratch []int64 // possible row counts of table c; nil if it is unchanged
}

func (r *killRun) inDoubt() bool {
	return len(r.stamps) < len(r.batches) || r.per > 0 && !r.all || len(r.scratch) > 1
}

// adoptAll applies all changes of a completed process to the model.
func (l *killLife) adoptAll(r *killRun) error {
	if r.per > 0 {
		l.model.adopt(r.rows)
	}
	if r.scratch != nil {
		l.model.scratch = r.scratch[0]
	}
	return l.adoptBatches(r, len(r.batches))
}

// adoptBatches applies the first n batches to the model.
func (l *killLife) adoptBatches(r *killRun, n int) error {
	m := l.model
	for i, e := range r.batches[:n] {
		m.adopt(e)
		if i >= len(r.stamps) {
			l.counts.Ahead++
			continue
		}
		if k := len(m.acked); k > 0 && m.acked[k-1].ts >= r.stamps[i] {
			return fmt.Errorf("timestamp %d after %d", r.stamps[i], m.acked[k-1].ts)
		}
		m.acked = append(m.acked, ackedTime{r.stamps[i], len(m.events)})
	}
	return nil
}

// read runs a command that only reads and returns its output.
func (l *killLife) read(args ...string) ([]byte, error) {
	out, err := l.run(killPlan{}, args...)
	if err == nil && (out.code != 0 || out.errs != "") {
		err = out.unexpected()
	}
	return out.out, err
}

func (l *killLife) scan(table string, more ...string) ([]string, error) {
	out, err := l.read(append([]string{"table", "scan", l.store, table}, more...)...)
	l.counts.Reads++
	return strings.Split(strings.TrimSuffix(string(out), "\n"), "\n"), err
}

// killInfo is the part of "store info" about the recovery.
type killInfo struct {
	Clean        bool  `json:"clean"`
	Frames       int64 `json:"frames"`
	TornBytes    int64 `json:"torn_bytes"`
	RepairedBits int64 `json:"repaired_bits"`
}

func (l *killLife) info() (killInfo, error) {
	var info struct{ Recovery killInfo }
	out, err := l.read("store", "info", l.store, "--format", "jsonl")
	if err == nil {
		err = json.Unmarshal(out, &info)
	}
	if err == nil && info.Recovery.RepairedBits != 0 {
		err = fmt.Errorf("a bit was repaired though none was flipped: %s", out)
	}
	return info.Recovery, err
}

// tables returns the row count of each table.
func (l *killLife) tables() (map[string]int64, error) {
	out, err := l.read("table", "list", l.store, "--format", "jsonl")
	tables := map[string]int64{}
	for line := range strings.Lines(string(out)) {
		var row struct {
			Table string
			Rows  int64
		}
		err = errors.Join(err, json.Unmarshal([]byte(line), &row))
		tables[row.Table] = row.Rows
	}
	return tables, err
}

// check reads the store, determines how many changes of the last process it contains, and compares
// it with the model.
func (l *killLife) check(r *killRun) error {
	before, err := l.fingerprint()
	if err != nil {
		return err
	}
	if l.behind && l.rng.IntN(2) == 0 {
		info, err := l.info()
		if err != nil {
			return err
		}
		if info.TornBytes > 0 {
			l.counts.Torn++
		}
	}
	if out, err := l.read("store", "verify", l.store); err != nil || string(out) != "ok\n" {
		return errors.Join(err, fmt.Errorf("verify: %s", out))
	}
	a, err := l.scan(killTables[0])
	if err != nil {
		return err
	}
	b, err := l.scan(killTables[1])
	if err != nil {
		return err
	}
	if err := l.resolve(r, a, b); err != nil {
		return err
	}
	for i, got := range [][]string{a, b} {
		if err := sameLines(got, l.model.now.lines(i)); err != nil {
			return fmt.Errorf("table %s: %w", killTables[i], err)
		}
	}
	if l.rng.IntN(2) == 0 {
		if err := l.checkPast(); err != nil {
			return err
		}
	}
	if r.scratch != nil || l.rng.IntN(4) == 0 {
		if err := l.checkScratch(r); err != nil {
			return err
		}
	}
	after, err := l.fingerprint()
	if err == nil && before != after {
		err = errors.New("readers changed the directory")
	}
	return err
}

func (l *killLife) fingerprint() ([16]byte, error) { return files.Fingerprint(vfs.OS, l.store) }

// resolve determines from the tables how many changes of the last process are in the store, and
// applies these to the model.
func (l *killLife) resolve(r *killRun, a, b []string) error {
	if r.per > 0 {
		mark := fmt.Sprintf(`,"n":%d,`, r.rows.n)
		n := 0
		for _, line := range b {
			if strings.Contains(line[:min(len(line), 60)], mark) {
				n++
			}
		}
		if total := len(r.rows.changes); n != total && (r.all || n%r.per != 0) {
			return fmt.Errorf("the table has %d of the %d rows of a load in batches of %d; completed: %v", n, total,
				r.per, r.all)
		}
		r.rows.changes = r.rows.changes[:n]
		l.model.adopt(r.rows)
	}
	if len(r.batches) == 0 {
		return nil
	}
	head, _, _ := strings.Cut(strings.TrimPrefix(a[0], fmt.Sprintf(`{"k":%d,"n":`, headKey)), ",")
	number, err := strconv.ParseInt(head, 10, 64)
	if err != nil && a[0] != "" {
		return fmt.Errorf("the first row of table a: %s", a[0])
	}
	n := 0
	for n < len(r.batches) && r.batches[n].n <= number {
		n++
	}
	if n < len(r.stamps) {
		return fmt.Errorf("%d batches were acknowledged, the store has %d", len(r.stamps), n)
	}
	return l.adoptBatches(r, n)
}

// checkPast compares a table as of an acknowledged timestamp.
func (l *killLife) checkPast() error {
	m := l.model
	if len(m.acked) == 0 {
		return nil
	}
	at, table := m.acked[l.rng.IntN(len(m.acked))], l.rng.IntN(2)
	got, err := l.scan(killTables[table], "--as-of", fmt.Sprint(at.ts))
	if err != nil {
		return err
	}
	state := m.at(at.events)
	if err := sameLines(got, state.lines(table)); err != nil {
		return fmt.Errorf("table %s as of %d: %w", killTables[table], at.ts, err)
	}
	return nil
}

// checkScratch compares the list of tables, and table c.
func (l *killLife) checkScratch(r *killRun) error {
	m := l.model
	tables, err := l.tables()
	if err != nil {
		return err
	}
	rows, ok := tables["c"]
	if !ok {
		rows = noScratch
	}
	may := r.scratch
	if may == nil {
		may = []int64{m.scratch}
	}
	want := len(killTables)
	if ok {
		want++
	}
	if !slices.Contains(may, rows) || len(tables) != want {
		return fmt.Errorf("tables %v; want table c with one of %v rows (%d means no table)", tables, may, noScratch)
	}
	m.scratch = rows
	if rows <= 0 || r.scratch == nil {
		return nil
	}
	got, err := l.scan("c")
	if err != nil {
		return err
	}
	var lines []string
	for k := range rows {
		lines = append(lines, scratchRow(k).line(k))
	}
	if err := sameLines(got, lines); err != nil {
		return fmt.Errorf("table c: %w", err)
	}
	return nil
}

// sameLines compares the output of a scan.
func sameLines(got, want []string) error {
	if len(got) == 1 && got[0] == "" {
		got = nil
	}
	for i := range min(len(got), len(want)) {
		if got[i] != want[i] {
			return fmt.Errorf("line %d is %s, want %s", i+1, cut(got[i]), cut(want[i]))
		}
	}
	if len(got) != len(want) {
		return fmt.Errorf("%d rows, want %d", len(got), len(want))
	}
	return nil
}
