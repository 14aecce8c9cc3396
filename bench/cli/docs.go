package cli

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"

	"github.com/oribi-db/oribi/bench/harness"
)

// docs/performance.md and README.md have figures between two marks. They are those of the results in
// testdata, a complete run of one commit. The paths are relative to the engine's module.
const (
	figuresPage = "docs/performance.md"
	readmePage  = "README.md"
	resultsFile = "results.json"
	keptResults = "bench/testdata/" + resultsFile
	keptTables  = "bench/testdata/table.md" // tables of several runs, until there are results of one

	beginMark = "<!-- go run -C bench . page writes the text up to the end mark -->\n"
	endMark   = "<!-- end -->\n"

	leastRounds = 3 // of results that are kept
)

// headline has the twelve workloads at the top of docs/performance.md. Those with inReadme are in
// README.md too.
var headline = []struct {
	workload, about string
	inReadme        bool
}{
	{"get", "read of a row by key, 16 columns, cached", true},
	{"get-cold", "the same, of a page that is not in memory", false},
	{"range-20", "read of 20 rows by a range of keys, cached", true},
	{"sum", "scan: sum of one column", true},
	{"q6", "TPC-H query 6", false},
	{"travel-4", "scan of a past state, four versions ago", false},
	{"load-sorted", "load of rows in key order, 16 columns", true},
	{"load-random", "load of rows in random order", false},
	{"update-column", "update of one column of all rows", false},
	{"commit-sync", "durable commit of one row", false},
	{"ycsb-a-zipf", "YCSB A: half reads, half updates, Zipf", false},
	{"size", "size of a row on disk", false},
}

// families are the other tables of docs/performance.md, without what is in the headline. A name may end in
// a star.
var families = []struct {
	title     string
	workloads []string
}{
	{"Points", []string{"get", "get-spread", "get-64", "get-miss", "get-cold", "hot-key", "mem-insert", "queue", "tx-*", "index-get"}},
	{"Beyond memory", []string{"get-uniform", "get-one-uniform", "get-64-uniform", "has-uniform", "update-uniform",
		"range-uniform", "delete-range", "load-uniform", "kv-get-uniform", "kv-put-uniform"}},
	{"Ranges", []string{"range", "range-20", "backward*"}},
	{"Scans", []string{"sum", "filter-*", "group", "q1", "q6", "travel-*", "scan-*", "column-decode"}},
	{"Writes", []string{"write", "upsert", "update-column", "load-sorted", "load-random", "commit", "commit-*", "increment", "index-insert",
		"kv-commit-*", "apply", "write-amp", "write-stall*", "rate*"}},
	{"Maintenance", []string{"flush", "merge", "merge-*", "delta-compact", "many-tables", "replay", "open", "open-*", "follow-*",
		"updated-*"}},
	{"Formats and interchange", []string{"size", "size-*", "hfile-*", "carbondata-*", "kudu-*", "load", "load-*", "export-*",
		"scan-csv"}},
	{"The programs in examples", []string{"program-*"}},
}

// A mix has a table with a row for each letter and a column for each way to choose keys: its
// workloads are name-letter-way.
var mixes = []struct {
	name, title string
	ways        []string
}{
	{"ycsb", "YCSB mixes, operations/s",
		[]string{"uniform", "zipf", "latest", "uniform-cold", "zipf-cold", "latest-cold"}},
	{"kv", "Keys and values, mixes with values of 100 and 1,024 bytes, operations/s", []string{"100", "1024"}},
}

// figures are the figures of a page.
type figures struct {
	runs []string // one line for each run; the first is run a
	rows []row
	used map[string]bool // workloads that are in a table
}

// row is a figure of a run.
type row struct {
	harness.Figure
	run int // index in runs
}

func (f *figures) find(workload string) *row {
	for i := range f.rows {
		if f.rows[i].Workload == workload {
			return &f.rows[i]
		}
	}
	return nil
}

// keepResults copies the results of a run to testdata if they are fit to be published.
func keepResults(root, name string, all []harness.Workload) error {
	r, err := readReport(name)
	if err != nil {
		return err
	}
	if err := publishable(r, all); err != nil {
		return fmt.Errorf("%s: %w", name, err)
	}
	return writeFile(filepath.Join(root, filepath.FromSlash(keptResults)), r.WriteJSON)
}

// publishable returns an error unless r is a run of one commit with all workloads and peers.
func publishable(r *harness.Report, all []harness.Workload) error {
	scale := harness.Scale{Name: r.Scale}
	var errs []error
	if !scale.Figures() {
		errs = append(errs, fmt.Errorf("figures of scale %s mean nothing", r.Scale))
	}
	if r.Rounds < leastRounds {
		errs = append(errs, fmt.Errorf("%d rounds, want at least %d", r.Rounds, leastRounds))
	}
	if r.Commit == "" || strings.HasSuffix(r.Commit, harness.Changed) {
		errs = append(errs, fmt.Errorf("the commit is %q, want one without changes", r.Commit))
	}
	for i := range all {
		if !r.Complete(&all[i]) {
			errs = append(errs, fmt.Errorf("%s was not measured with all its peers; run --resume measures what is missing",
				all[i].Name))
		}
	}
	return errors.Join(errs...)
}

// readFigures reads the results in testdata.
func readFigures(root string) (*figures, error) {
	r, err := readReport(filepath.Join(root, filepath.FromSlash(keptResults)))
	if errors.Is(err, fs.ErrNotExist) {
		text, err := os.ReadFile(filepath.Join(root, filepath.FromSlash(keptTables)))
		if err != nil {
			return nil, err
		}
		return parseTables(string(text)), nil
	}
	if err != nil {
		return nil, err
	}
	return figuresOf(r), nil
}

func figuresOf(r *harness.Report) *figures {
	f := &figures{runs: []string{fmt.Sprintf("commit %s, scale %s, %d rounds, %s, %s",
		r.Commit, r.Scale, r.Rounds, r.Machine, r.Started.Format("2006-01-02 15:04"))}}
	for _, g := range r.Figures() {
		f.rows = append(f.rows, row{Figure: g})
	}
	return f
}

// parseTables reads the tables of runs that are one after another, each after its line "Scale …".
func parseTables(text string) *figures {
	f := &figures{}
	for line := range strings.Lines(text) {
		line = strings.TrimSpace(line)
		if strings.HasPrefix(line, "Scale ") {
			_, about, _ := strings.Cut(strings.TrimSuffix(line, "."), ", ")
			f.runs = append(f.runs, strings.Replace(about, " started ", " ", 1))
		}
		cells := strings.Split(strings.TrimSuffix(strings.TrimPrefix(line, "| "), " |"), " | ")
		if len(cells) < 7 || cells[0] == "workload" {
			continue
		}
		ratio, _, _ := strings.Cut(cells[6], " ")
		f.rows = append(f.rows, row{harness.Figure{Workload: cells[0], Unit: cells[1], Ours: cells[2],
			Value: cells[3], Other: strings.TrimSpace(cells[4]), Best: strings.TrimSpace(cells[5]), Ratio: strings.TrimSpace(ratio)}, len(f.runs) - 1})
	}
	return f
}

// writePages writes the figures of testdata into the pages.
func writePages(root string) error {
	f, err := readFigures(root)
	if err != nil {
		return err
	}
	for name, text := range map[string]string{figuresPage: f.page(), readmePage: f.readme()} {
		path := filepath.Join(root, filepath.FromSlash(name))
		page, err := os.ReadFile(path)
		if err != nil {
			return err
		}
		written, err := withFigures(string(page), text)
		if err != nil {
			return fmt.Errorf("%s: %w", name, err)
		}
		if err := os.WriteFile(path, []byte(written), 0o644); err != nil {
			return err
		}
	}
	return nil
}

// withFigures returns a page in which text replaces what is between the marks.
func withFigures(page, text string) (string, error) {
	before, rest, ok := strings.Cut(page, beginMark)
	_, after, end := strings.Cut(rest, endMark)
	if !ok || !end {
		return "", fmt.Errorf("the page lacks the marks %q and %q", strings.TrimSpace(beginMark), strings.TrimSpace(endMark))
	}
	return before + beginMark + "\n" + strings.TrimSpace(text) + "\n\n" + endMark + after, nil
}

// readme returns the table of README.md.
func (f *figures) readme() string {
	var b strings.Builder
	b.WriteString("| measured | Oribi | best other program | ratio |\n|---|---:|---:|---:|\n")
	for _, h := range headline {
		if r := f.find(h.workload); r != nil && h.inReadme {
			fmt.Fprintf(&b, "| %s | %s %s | %s: %s %s | %s |\n", h.about, r.Value, r.Unit, r.Other, r.Best, r.Unit, r.Ratio)
		}
	}
	return b.String()
}

// page returns the tables of docs/performance.md.
func (f *figures) page() string {
	var b strings.Builder
	f.used = map[string]bool{}
	f.table(&b, "Twelve figures", nil)
	for _, family := range families {
		f.table(&b, family.title, family.workloads)
	}
	for _, m := range mixes {
		f.mix(&b, m.name, m.title, m.ways)
	}
	var alone []string
	for i := range f.rows {
		if r := &f.rows[i]; !f.used[r.Workload] {
			alone = append(alone, fmt.Sprintf("%s %s %s%s", r.Workload, r.Value, r.Unit, f.letter(r, " (%s)")))
		}
	}
	if len(alone) > 0 {
		fmt.Fprintf(&b, "Without another program: %s.\n\n", strings.Join(alone, ", "))
	}
	if len(f.runs) == 1 {
		fmt.Fprintf(&b, "- Run: %s\n", f.runs[0])
		return b.String()
	}
	list := make([]string, len(f.runs))
	for i := range f.runs {
		list[i] = f.letter(&row{run: i}, "%s: ") + f.runs[i]
	}
	fmt.Fprintf(&b, "Runs: %s.\n", strings.Join(list, "; "))
	return b.String()
}

// letter formats the name of a row's run if there are several.
func (f *figures) letter(r *row, format string) string {
	if len(f.runs) < 2 {
		return ""
	}
	return fmt.Sprintf(format, string(rune('a'+r.run)))
}

// table writes a table of workloads, by their names or, without names, of the headline.
func (f *figures) table(b *strings.Builder, title string, names []string) {
	fmt.Fprintf(b, "### %s\n\n| workload | Oribi | best other program | ratio |%s\n|---|---:|---:|---:|%s\n",
		title, f.letter(&row{}, " run |%.0s"), f.letter(&row{}, "---|%.0s"))
	write := func(name string, r *row) {
		fmt.Fprintf(b, "| %s | %s %s | %s: %s | %s |%s\n",
			name, r.Value, r.Unit, r.Other, r.Best, r.Ratio, f.letter(r, " %s |"))
	}
	for _, h := range headline {
		if r := f.find(h.workload); r != nil && names == nil {
			f.used[r.Workload] = true
			write("`"+h.workload+"`: "+h.about, r)
		}
	}
	for _, name := range names {
		prefix, star := strings.CutSuffix(name, "*")
		for i := range f.rows {
			r := &f.rows[i]
			named := r.Workload == name || star && strings.HasPrefix(r.Workload, prefix)
			if named && r.Ratio != "" && !f.used[r.Workload] {
				f.used[r.Workload] = true
				write(r.Workload, r)
			}
		}
	}
	b.WriteString("\n")
}

// mix writes the table of a mix: in each cell the figure, and the ratio to the best other program.
func (f *figures) mix(b *strings.Builder, name, title string, ways []string) {
	fmt.Fprintf(b, "### %s\n\n| mix | %s |\n|---|%s\n",
		title, strings.Join(ways, " | "), strings.Repeat("---|", len(ways)))
	for letter := 'a'; letter <= 'f'; letter++ {
		cells := make([]string, len(ways))
		for i, way := range ways {
			if r := f.find(fmt.Sprintf("%s-%c-%s", name, letter, way)); r != nil {
				f.used[r.Workload] = true
				cells[i] = fmt.Sprintf("%s, %s × %s%s", r.Value, r.Ratio, r.Other, f.letter(r, " (%s)"))
			}
		}
		fmt.Fprintf(b, "| %s-%c | %s |\n", name, letter, strings.Join(cells, " | "))
	}
	b.WriteString("\n")
}
