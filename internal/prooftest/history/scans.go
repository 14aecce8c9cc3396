package history

import (
	"fmt"
	"slices"

	"github.com/oribi-db/oribi"
	"github.com/oribi-db/oribi/internal/prooftest/model"
	"github.com/oribi-db/oribi/internal/prooftest/script"
	"github.com/oribi-db/oribi/internal/prooftest/values"
	"github.com/oribi-db/oribi/schema"
)

// find runs a scan and compares its rows, in order unless the scan may return any order.
func (r *Runner) find(st *script.Step) error {
	rd, t, may, err := r.reading(st)
	if err != nil {
		return err
	}
	s := t.Schema()
	columns := rd.ColumnsOf(s)
	var got []string
	scan := t.Scan(r.ctx, scanOptions(t, rd)...)
	if rd.Values {
		got, err = scannedValues(s, scan, columns)
	} else {
		got, err = scannedCells(scan)
	}
	if done, err := r.ended(rd, may, err); done || err != nil {
		return err
	}
	var wanted []string
	for _, row := range r.Model.Tables[st.Table].Matching(rd) {
		wanted = append(wanted, scanned(s, model.Project(row, columns), columns, rd.Values))
	}
	if rd.Desc {
		slices.Reverse(wanted)
	}
	r.Counts.Rows += int64(len(got))
	if err := compareScan(rd, got, wanted); err != nil {
		return err
	}
	switch {
	case rd.Any && rd.Limit >= 0: // the store may choose any of them
		r.answered(len(got))
	case rd.Any:
		slices.Sort(got)
		fallthrough
	default:
		r.answered(got)
	}
	return nil
}

// scanned is a row formatted for comparison.
func scanned(s *schema.Schema, cells [][]byte, columns []int, asValues bool) string {
	if !asValues {
		return script.CellsText(cells, nil, " ")
	}
	row := oribi.Row{}
	for i, c := range columns {
		row[s.Columns[c].Name] = values.GoValue(&s.Columns[c], cells[i])
	}
	return valuesText(s, columns, row)
}

func valuesText(s *schema.Schema, columns []int, row oribi.Row) string {
	text := fmt.Sprint(len(row))
	for _, c := range columns {
		text += fmt.Sprintf(" %s=%#v", s.Columns[c].Name, row[s.Columns[c].Name])
	}
	return text
}

func scannedCells(scan *oribi.Scan) (got []string, err error) {
	for b, err := range scan.Batches() {
		if err != nil {
			return nil, err
		}
		cells := make([][]byte, len(b.Columns))
		for i := b.Selection.Next(0); i >= 0; i = b.Selection.Next(i + 1) {
			if i >= b.Len {
				return nil, fmt.Errorf("the selection contains row %d, but the batch has %d rows", i, b.Len)
			}
			for c, v := range b.Columns {
				cells[c] = v.Cell(i)
			}
			got = append(got, script.CellsText(cells, nil, " "))
		}
	}
	return got, nil
}

func scannedValues(s *schema.Schema, scan *oribi.Scan, columns []int) (got []string, err error) {
	for row, err := range scan.Rows() {
		if err != nil {
			return nil, err
		}
		got = append(got, valuesText(s, columns, row))
	}
	return got, nil
}

// compareScan compares a scan's rows with all that match. With a limit they must be the first ones;
// if the scan may return any order, any of them.
func compareScan(rd *script.Read, got, wanted []string) error {
	n := len(wanted)
	if rd.Limit >= 0 {
		n = min(n, int(rd.Limit))
	}
	if len(got) != n {
		return fmt.Errorf("got %d rows, want %d of %d%s", len(got), n, len(wanted), firstDifference(got, wanted))
	}
	if !rd.Any {
		for i := range got {
			if got[i] != wanted[i] {
				return fmt.Errorf("row %d is %s, want %s", i, got[i], wanted[i])
			}
		}
		return nil
	}
	left := map[string]int{}
	for _, w := range wanted {
		left[w]++
	}
	for i, g := range got {
		if left[g]--; left[g] < 0 {
			return fmt.Errorf("row %d, %s: unexpected, or returned too often", i, g)
		}
	}
	return nil
}

// firstDifference describes the first difference of two lists.
func firstDifference(got, wanted []string) string {
	for i := range max(len(got), len(wanted)) {
		switch {
		case i >= len(got):
			return fmt.Sprintf("; row %d is missing: %s", i, wanted[i])
		case i >= len(wanted):
			return fmt.Sprintf("; row %d is extra: %s", i, got[i])
		case got[i] != wanted[i]:
			return fmt.Sprintf("; row %d is %s, want %s", i, got[i], wanted[i])
		}
	}
	return ""
}

// count counts rows and computes aggregates over them.
func (r *Runner) count(st *script.Step) error {
	rd, t, may, err := r.reading(st)
	if err != nil {
		return err
	}
	n, err := t.Count(r.ctx, append(countOptions(t, rd), oribi.Workers(max(1, rd.Workers)))...)
	if done, err := r.ended(rd, may, err); done || err != nil {
		return err
	}
	matching := r.Model.Tables[st.Table].Matching(rd)
	if wanted := int64(len(matching)); n != wanted {
		return fmt.Errorf("counted %d rows, want %d", n, wanted)
	}
	if done, err := r.ended(rd, may, r.aggregate(t, rd, matching)); done || err != nil {
		return err
	}
	r.answered(n)
	return nil
}
