package lab

import (
	"bufio"
	"context"
	"encoding/csv"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strconv"

	"github.com/oribi-db/oribi/internal/instore"
	"github.com/oribi-db/oribi/vfs"
)

// Run runs the experiments of a spec and writes their results to a new directory: report.html,
// runs.csv, events.jsonl, the spec with its defaults, spec.json, and of the workload versions
// reads.csv. After an error there is no
// directory. progress is as for Results. Errors: fs.ErrExist if out exists; errors of reading files
// that the spec names; ctx.Err().
func Run(ctx context.Context, spec *Spec, out string, progress func(done, of int64)) error {
	if err := instore.Check(vfs.OS, out); err != nil {
		return err
	}
	if err := os.Mkdir(out, 0o777); err != nil { // before the experiments, which take time
		return err
	}
	err := run(ctx, spec, out, progress)
	if err != nil {
		os.RemoveAll(out)
	}
	return err
}

func run(ctx context.Context, spec *Spec, out string, progress func(done, of int64)) error {
	s := *spec
	s.fill()
	results, err := Results(ctx, &s, progress)
	if err != nil {
		return err
	}
	for _, f := range []struct {
		name  string
		write func(w io.Writer) error
	}{
		{"spec.json", func(w io.Writer) error { return writeSpec(w, &s) }},
		{"report.html", func(w io.Writer) error { return WriteReport(w, &s, results) }},
		{"runs.csv", func(w io.Writer) error { return WriteCSV(w, results) }},
		{"events.jsonl", func(w io.Writer) error { return writeEvents(w, results) }},
	} {
		if err := writeFile(filepath.Join(out, f.name), f.write); err != nil {
			return err
		}
	}
	if !slices.ContainsFunc(results, func(r *Result) bool { return len(r.Reads) > 0 }) {
		return nil
	}
	return writeFile(filepath.Join(out, "reads.csv"), func(w io.Writer) error { return writeReads(w, results) })
}

func writeFile(name string, write func(w io.Writer) error) (err error) {
	f, err := os.Create(name)
	if err != nil {
		return err
	}
	defer func() {
		if closed := f.Close(); err == nil {
			err = closed
		}
	}()
	w := bufio.NewWriterSize(f, 256<<10)
	if err := write(w); err != nil {
		return err
	}
	return w.Flush()
}

func writeSpec(w io.Writer, s *Spec) error {
	e := json.NewEncoder(w)
	e.SetEscapeHTML(false)
	e.SetIndent("", "  ")
	return e.Encode(s)
}

func writeEvents(w io.Writer, results []*Result) error {
	for _, r := range results {
		if _, err := w.Write(r.events.Bytes()); err != nil {
			return err
		}
	}
	return nil
}

var csvHeader = []string{"workload", "policy", "operations", "rowsets", "height", "max_height",
	"write_amplification", "read_amplification",
	"space_amplification", "pending_bytes", "bytes", "written_bytes", "live_rows", "merges"}

// WriteCSV writes the samples of all runs, one per line, after a line with the names of the
// columns.
func WriteCSV(w io.Writer, results []*Result) error {
	out := csv.NewWriter(w)
	out.Write(csvHeader) // Error reports a failed write, here and below
	decimal := func(x float64) string { return strconv.FormatFloat(x, 'f', 4, 64) }
	for _, r := range results {
		for i := range r.Samples {
			s := &r.Samples[i]
			out.Write([]string{r.Workload, r.Policy, fmt.Sprint(s.Operations), fmt.Sprint(s.RowSets),
				decimal(s.Height), fmt.Sprint(s.MaxHeight),
				decimal(s.WriteAmplification), decimal(s.ReadAmplification), decimal(s.SpaceAmplification),
				fmt.Sprint(s.PendingBytes), fmt.Sprint(s.Bytes), fmt.Sprint(s.WrittenBytes),
				fmt.Sprint(s.LiveRows), fmt.Sprint(s.Merges)})
		}
	}
	out.Flush()
	return out.Error()
}

// writeReads writes the costs of reads, one line per stage and version.
func writeReads(w io.Writer, results []*Result) error {
	out := csv.NewWriter(w)
	out.Write([]string{"workload", "policy", "stage", "version", "rows", "scan_reads",
		"scan_bytes", "get_reads", "get_bytes"})
	for _, r := range results {
		for _, c := range r.Reads {
			line := []string{r.Workload, r.Policy, c.Stage}
			for _, n := range []int64{c.Version, c.Rows, c.ScanReads, c.ScanBytes, c.GetReads, c.GetBytes} {
				line = append(line, strconv.FormatInt(n, 10))
			}
			out.Write(line)
		}
	}
	out.Flush()
	return out.Error()
}
