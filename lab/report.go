package lab

import (
	"bytes"
	"cmp"
	_ "embed" // of the template
	"fmt"
	"html/template"
	"io"
	"math"
	"slices"
	"strconv"
	"strings"

	"github.com/oribi-db/oribi/internal/figures"
)

//go:embed report.html
var reportText string

var reportTemplate = template.Must(template.New("report").Parse(reportText))

// report is the data of the template.
type report struct {
	Title, About, Repeat, Spec string
	Workloads                  []reportWorkload
	Measures                   []*measureOf
	Left, Right, Label, XText  int // of all plots
}

type reportWorkload struct {
	ID, Label, About string
	Columns          []string
	Rows             []reportRow
	Reads            []reportTable
	Plots            []plot
	Layouts          []reportLayouts
	LastFrame        int
}

type reportTable struct {
	Title   string
	Columns []string
	Rows    []reportRow
}

type reportRow struct {
	Policy, Class string
	Cells         []cell
}

type cell struct {
	Text string
	Best bool
}

type plot struct {
	Title, About   string
	Width, Height  int
	XTicks, YTicks []tick
	Curves         []curve
}

type reportLayouts struct {
	Policy, Class string
	Frames        []frame
}

type frame struct {
	About, Kind, Path string
	Print             bool // on paper too, where nothing moves
}

// printed is the number of layouts of a run on paper.
const printed = 4

// measureOf is a measure that is plotted and compared.
type measureOf struct {
	Title   string
	about   string // what is shown, in few words
	Meaning string
	column  string // of the table, "" = none
	of      func(s *Sample) float64
	last    bool // the table has the last value, not the average
	bytes   bool
}

var measures = []*measureOf{
	{"Height", "rowsets over a key, on average",
		"The number of rowsets over a key, on average over the data. A read by key looks into the filter or the " +
			"index of each.",
		"height, average", func(s *Sample) float64 { return s.Height }, false, false},
	{"Read amplification", "rowsets and delta files per read",
		"How many rowsets and delta files a read by key consults, on average over the keys of the last operations: " +
			"each rowset whose bounds contain the key, and the redo files of the one that has it.",
		"read amplification, average", func(s *Sample) float64 { return s.ReadAmplification }, false, false},
	{"Write amplification", "bytes written per byte flushed",
		"How many bytes flushes, merges and delta compactions have written to files, per byte that flushes have " +
			"written. The log is not counted.",
		"write amplification, at the end", func(s *Sample) float64 { return s.WriteAmplification }, true, false},
	{"Space amplification", "bytes of files per byte of live rows",
		"The ratio of the bytes of all files, history included, to those of the live rows when they were flushed.",
		"space amplification, average", func(s *Sample) float64 { return s.SpaceAmplification }, false, false},
	{"Bytes pending", "that merging everything would rewrite",
		"The bytes of the rowsets that overlap others, and of redos in the others: what a merge of everything would " +
			"have to rewrite.",
		"bytes pending, average", func(s *Sample) float64 { return float64(s.PendingBytes) }, false, true},
}

// tick formats a number of an axis.
func (m *measureOf) tick(v float64) string {
	if m.bytes {
		return strings.Replace(figures.Size(int64(v)), ".0 ", " ", 1)
	}
	return strconv.FormatFloat(v, 'g', 4, 64)
}

// value returns the measure of a run for the table.
func (m *measureOf) value(r *Result) float64 {
	if m.last {
		return m.of(&r.Samples[len(r.Samples)-1])
	}
	sum := 0.0
	for i := range r.Samples {
		sum += m.of(&r.Samples[i])
	}
	return sum / float64(len(r.Samples))
}

// WriteReport writes one HTML page that compares the results of a spec. It refers to nothing
// outside of it, and is readable without scripts.
func WriteReport(w io.Writer, spec *Spec, results []*Result) error {
	s := *spec
	s.fill()
	var text bytes.Buffer
	if err := writeSpec(&text, &s); err != nil {
		return err
	}
	r := report{Spec: text.String(), Measures: measures, Left: plotLeft, Right: plotRight,
		Label: plotLeft - 6, XText: plotBottom + 20}
	var names []string
	for i := range s.Workloads {
		w := &s.Workloads[i]
		names = append(names, w.Label)
		r.Workloads = append(r.Workloads, workloadReport(i, w, results[i*len(s.Policies):(i+1)*len(s.Policies)]))
	}
	r.Title = strings.Join(names, ", ")
	r.Repeat = "A simulated run gives the same runs.csv, byte for byte."
	engine := "simulated: bounds and sizes of rowsets, no rows"
	if s.Engine == Real {
		r.Repeat = "The files of a real store differ by some bytes in size."
		engine = "a store in a temporary directory"
	}
	limit := "merges until the policy picks nothing"
	if s.RewriteRatio > 0 {
		limit = fmt.Sprintf("merges may write %v times what flushes write", s.RewriteRatio)
	}
	r.About = fmt.Sprintf("Engine: %s. Seed %d. A flush after %s of rows, rowsets of %s, %s.", engine, s.Seed,
		s.FlushBytes, s.RowSetBytes, limit)
	return reportTemplate.Execute(w, &r)
}

func workloadReport(i int, w *Workload, runs []*Result) reportWorkload {
	out := reportWorkload{ID: fmt.Sprintf("workload-%d", i+1), Label: w.Label, About: describe(w)}
	out.Columns, out.Rows = compare(runs)
	for _, m := range measures {
		out.Plots = append(out.Plots, plotOf(runs, m))
	}
	out.Reads = readTables(runs[0].Reads)
	tallest := 1
	for _, r := range runs {
		for _, f := range r.Frames {
			tallest = max(tallest, f.Layout.MaxHeight())
		}
	}
	unit := "operations"
	if w.Name == "replay" {
		if unit = "merges"; w.Events != "" {
			unit = "flushes"
		}
	}
	for k, r := range runs {
		l := reportLayouts{Policy: r.Policy, Class: class(k)}
		n := len(r.Frames)
		for i, f := range r.Frames {
			path, kind := picture(f.Layout, tallest)
			about := fmt.Sprintf("After %s %s: %s rowsets, at most %d over a key", figures.Thousands(f.Operations),
				unit, figures.Thousands(int64(len(f.Layout.RowSets))), f.Layout.MaxHeight())
			l.Frames = append(l.Frames, frame{about, kind, path, (i+1)*printed/n > i*printed/n})
		}
		out.LastFrame = max(out.LastFrame, len(l.Frames)-1)
		out.Layouts = append(out.Layouts, l)
	}
	return out
}

// readTables returns what reads cost, by stage and version.
func readTables(costs []ReadCost) []reportTable {
	if len(costs) == 0 {
		return nil
	}
	last := slices.MaxFunc(costs, func(a, b ReadCost) int { return cmp.Compare(a.Version, b.Version) }).Version
	table := func(title string, text func(c *ReadCost) string) reportTable {
		t := reportTable{Title: title}
		for v := range last {
			t.Columns = append(t.Columns, fmt.Sprintf("version %d", v+1))
		}
		for i := range costs {
			c := &costs[i]
			if i == 0 || costs[i-1].Stage != c.Stage {
				t.Rows = append(t.Rows, reportRow{Policy: c.Stage, Cells: make([]cell, last)})
			}
			t.Rows[len(t.Rows)-1].Cells[c.Version-1].Text = text(c)
		}
		return t
	}
	return []reportTable{
		table("Bytes that a scan reads as of each version", func(c *ReadCost) string {
			return figures.Size(c.ScanBytes)
		}),
		table(fmt.Sprintf("Bytes that %d reads by key read as of each version", VersionGets), func(c *ReadCost) string {
			return figures.Size(c.GetBytes)
		}),
	}
}

// describe returns what a workload does and how much.
func describe(w *Workload) string {
	var about string
	for _, k := range kinds {
		if k.Name == w.Name {
			about = strings.ToUpper(k.About.About[:1]) + k.About.About[1:] + "."
		}
	}
	switch {
	case w.Events != "":
		return about + " Event log: " + w.Events + "."
	case w.Layout != "":
		return about + " Layout: " + w.Layout + "."
	}
	if w.Versions > 0 {
		return fmt.Sprintf("%s %s rows, %d versions, values of %d bytes.", about,
			figures.Thousands(w.Keys), w.Versions, w.ValueBytes)
	}
	history := "History is kept forever."
	if w.History > 0 {
		history = fmt.Sprintf("History is kept for %s operations.", figures.Thousands(w.History))
	}
	return fmt.Sprintf("%s %s operations, %s keys, values of %d bytes. %s", about, figures.Thousands(w.Operations),
		figures.Thousands(w.Keys), w.ValueBytes, history)
}

// compare returns the table of a workload.
func compare(runs []*Result) (columns []string, rows []reportRow) {
	rows = make([]reportRow, len(runs))
	for i, r := range runs {
		rows[i] = reportRow{Policy: r.Policy, Class: class(i)}
	}
	add := func(title string, text func(float64) string, mark bool, of func(*Result) float64) {
		columns = append(columns, title)
		values := make([]float64, len(runs))
		for i, r := range runs {
			values[i] = of(r)
		}
		least := text(slices.Min(values))
		for i, v := range values {
			best := mark && text(v) == least && text(slices.Max(values)) != least
			rows[i].Cells = append(rows[i].Cells, cell{text(v), best})
		}
	}
	count := func(v float64) string { return figures.Thousands(int64(math.Round(v))) }
	for k, m := range measures {
		text := func(v float64) string { return strconv.FormatFloat(v, 'f', 2, 64) }
		if m.bytes {
			text = func(v float64) string { return figures.Size(int64(v)) }
		}
		add(m.column, text, true, m.value)
		if k == 0 {
			add("height, greatest", count, true, func(r *Result) float64 {
				most := 0
				for i := range r.Samples {
					most = max(most, r.Samples[i].MaxHeight)
				}
				return float64(most)
			})
		}
	}
	last := func(r *Result) *Sample { return &r.Samples[len(r.Samples)-1] }
	add("merges", count, false, func(r *Result) float64 { return float64(last(r).Merges) })
	add("rowsets, at the end", count, false, func(r *Result) float64 { return float64(last(r).RowSets) })
	return columns, rows
}
