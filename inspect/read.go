package inspect

import (
	"context"
	"errors"
	"fmt"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/oribi-db/oribi"
	"github.com/oribi-db/oribi/internal/celltext"
	"github.com/oribi-db/oribi/internal/figures"
	"github.com/oribi-db/oribi/rowset"
)

// Limits of the description of a read.
const (
	readTime   = 80 * time.Millisecond // after which no further rowset is searched
	stepsMost  = 60                    // rowsets that the page shows one by one
	filesMost  = 40                    // files of a rowset that it shows one by one
	manyDeltas = 8                     // changes of a row from which on the page mentions them
	namesMost  = 12                    // columns that a sentence names
	muchRead   = 64 << 10              // bytes of a file from which on it mentions the file
)

// readView describes how a read finds the row, as if nothing were in memory but what was not
// flushed.
type readView struct {
	Found   string   `json:"found"`   // memory, disk, nowhere
	Verdict []string `json:"verdict"` // in sentences: what makes the read fast or slow

	RowSets     int   `json:"rowsets"`      // of the table, on disk
	Outside     int   `json:"outside"`      // not searched: their keys are all below or above the key
	Searched    int   `json:"searched"`     // searched
	Excluded    int   `json:"excluded"`     // of these: the filter excluded the key
	NotSearched int   `json:"not_searched"` // the row was found before
	Complete    bool  `json:"complete"`     // otherwise time was up before all rowsets were searched
	Reads       int   `json:"reads"`        // of files
	Bytes       int64 `json:"bytes"`        // that they read
	Nanoseconds int64 `json:"ns"`           // that it took just now

	Steps   []stepView `json:"steps"`   // the first ones, and the step that finds the row
	Further int        `json:"further"` // steps that are left out

	Slow bool `json:"-"` // the verdict names a reason
}

// stepView is the search of one set of rows.
type stepView struct {
	Number int        `json:"step"` // from 1
	RowSet uint64     `json:"rowset,omitempty"`
	Memory bool       `json:"memory"`
	Has    bool       `json:"has"`   // it has the row
	Lines  []string   `json:"lines"` // what happens, in sentences
	Reads  int        `json:"reads"`
	Bytes  int64      `json:"bytes"`
	Time   int64      `json:"ns"`
	Files  []readFile `json:"files"`
	More   int        `json:"further_files"`

	URL string `json:"-"`
}

// readFile counts the reads of the search in one file.
type readFile struct {
	File  string `json:"file"`
	Block uint64 `json:"block"`
	Reads int    `json:"reads"`
	Bytes int64  `json:"bytes"`

	URL string `json:"-"`
}

// Duration returns the time of a step for the page.
func (s *stepView) Duration() time.Duration { return time.Duration(s.Time) }

// Duration returns the time of the read for the page.
func (v *readView) Duration() time.Duration { return time.Duration(v.Nanoseconds) }

// read describes how a read finds the row.
func (r *rowRequest) read(ctx context.Context) (*readView, error) {
	limited, cancel := context.WithTimeout(ctx, readTime)
	defer cancel()
	trace, err := r.q.Table.Explain(limited, r.key, r.at.option)
	late := err != nil && ctx.Err() == nil && errors.Is(err, context.DeadlineExceeded)
	if err != nil && !late {
		return nil, err
	}
	v := &readView{Found: "nowhere", RowSets: trace.RowSets, Outside: trace.Outside, Searched: len(trace.Steps),
		NotSearched: trace.NotSearched(), Complete: !late}
	for i := range trace.Memory {
		v.Steps = append(v.Steps, memoryStep(i+1, &trace.Memory[i], trace.Expired))
	}
	if trace.InMemory {
		v.Found = "memory"
	}
	found := -1
	for i := range trace.Steps {
		step := &trace.Steps[i]
		reads, bytes := step.Totals()
		v.Reads, v.Bytes, v.Nanoseconds = v.Reads+reads, v.Bytes+bytes, v.Nanoseconds+step.Time.Nanoseconds()
		if !step.Filter {
			v.Excluded++
		}
		if step.Live {
			v.Found, found = "disk", i
		}
		if i < stepsMost || step.Live {
			v.Steps = append(v.Steps, r.diskStep(len(trace.Memory)+i+1, step))
		} else {
			v.Further++
		}
	}
	v.Verdict = verdict(v, &trace, found)
	v.Slow = len(v.Verdict) > 1
	return v, nil
}

// memoryStep describes the search of a MemRowSet.
func memoryStep(number int, m *rowset.MemTrace, expired bool) stepView {
	s := stepView{Number: number, Memory: true, Has: m.Live, Files: []readFile{}}
	rows := plural(m.Rows, "row")
	switch {
	case !m.Found:
		s.Lines = append(s.Lines, fmt.Sprintf("The rows in memory that were not flushed yet, %s, are searched: none "+
			"has the key.", rows))
	case !m.Live:
		s.Lines = append(s.Lines, "The row is in memory, but it is deleted in this state.")
	default:
		s.Lines = append(s.Lines, fmt.Sprintf("The row is in memory, among %s that were not flushed yet. No file is "+
			"read.", rows))
	}
	if m.Changes > 0 {
		s.Lines = append(s.Lines, fmt.Sprintf("Applied to the row as it was inserted: %s up to this state.",
			plural(m.Changes, "later change")))
	}
	if m.Live && expired {
		s.Lines = append(s.Lines, "The row has expired: the read returns nothing.")
	}
	return s
}

// diskStep describes the search of a rowset.
func (r *rowRequest) diskStep(number int, t *rowset.TraceStep) stepView {
	s := stepView{Number: number, RowSet: t.RowSet, Has: t.Live, Time: t.Time.Nanoseconds(), Files: []readFile{},
		URL: r.s.address("/rowset", r.tableQuery("rowset", t.RowSet))}
	s.Reads, s.Bytes = t.Totals()
	add := func(format string, args ...any) { s.Lines = append(s.Lines, fmt.Sprintf(format, args...)) }
	add("The key is between the first and the last key of rowset %d.", t.RowSet)
	switch {
	case !t.Filter:
		add("The bloom filter says that the rowset does not have the key: nothing else is read.")
	case !t.Found:
		add("The bloom filter says that the rowset may have the key. The key index does not have it: the filter was " +
			"wrong, as it is for a small share of keys.")
	case t.RowFile && columnReads(t) > 0:
		add("The row file has the key: it is row %d. Byte strings that are not in the row file are read from their "+
			"columns.", t.Row)
	case t.RowFile:
		add("The row file has the key and the whole row, row %d, in one place.", t.Row)
	default:
		add("The key index has the key: it is row %d. Each column is read from its own file.", t.Row)
	}
	if t.Redos > 0 {
		add("Applied to the row as it was flushed: %s up to this state.", plural(t.Redos, "REDO change"))
		if names := r.unread(t); len(names) > 0 {
			add("Not read from column files: %s. Changes have these cells, and what is older than such a change is "+
				"not looked at.", strings.Join(names, ", "))
		}
	}
	if t.Undos > 0 {
		add("Taken back, because this state is before them: %s.", plural(t.Undos, "UNDO change"))
	}
	switch {
	case t.Expired:
		add("The row has expired: the read returns nothing.")
	case t.Found && !t.Live:
		add("In this state the row is deleted here, or not inserted yet: the search goes on.")
	}
	switch {
	case t.Excluded:
		add("At present the key directory of the rowset is in memory and excludes the key: no file is read.")
	case t.Cached:
		add("At present the row is in the cache: a read takes it from there.")
	case t.Directory:
		add("At present the key directory of the rowset is in memory: it replaces the filter.")
	}
	if t.Marked > 0 {
		add("At present the cache has marks of the cblocks of %s: a read takes a part of each, a few kilobytes.",
			plural(t.Marked, "column"))
	}
	for i, f := range t.Reads {
		if i == filesMost {
			s.More = len(t.Reads) - filesMost
			break
		}
		query := r.tableQuery("rowset", t.RowSet)
		query.Set("block", strconv.FormatUint(uint64(f.Block), 10))
		s.Files = append(s.Files, readFile{celltext.Printable(f.File), uint64(f.Block), f.Reads, f.Bytes,
			r.s.address("/block", query)})
	}
	return s
}

// unread returns the names of the first columns with files that a search has not read. Key columns
// are left out: they never change.
func (r *rowRequest) unread(t *rowset.TraceStep) (names []string) {
	if !t.Live || t.RowFile {
		return nil
	}
	read := map[string]bool{}
	for _, f := range t.Reads {
		read[f.File] = true
	}
	m := r.q.Table.RowSets()
	at := slices.IndexFunc(m, func(m *rowset.Metadata) bool { return m.ID == t.RowSet })
	if at < 0 {
		return nil
	}
	for i := r.schema.Keys; i < len(r.schema.Columns); i++ {
		c := &r.schema.Columns[i]
		hasFile := slices.ContainsFunc(m[at].Columns, func(f rowset.ColumnBlock) bool { return f.ID == c.ID })
		if hasFile && !read[fmt.Sprintf("column %q", c.Name)] && len(names) < namesMost {
			names = append(names, celltext.Printable(c.Name))
		}
	}
	return names
}

// verdict returns sentences about why the read is fast or slow.
func verdict(v *readView, trace *oribi.Trace, found int) (list []string) {
	add := func(format string, args ...any) { list = append(list, fmt.Sprintf(format, args...)) }
	switch {
	case v.Found == "memory":
		add("Fast: the row is in memory.")
		if changes := trace.Memory[len(trace.Memory)-1].Changes; changes >= manyDeltas {
			add("%s are applied one after another: a flush and compactions shorten that.", plural(changes, "change"))
		}
		return list
	case !v.Complete:
		add("Slow: so many rowsets have keys around this one that this page has not searched all of them.")
	case v.Searched == 0:
		add("Fast: no rowset on disk can have the key, so no file is read.")
		return list
	}
	add("With nothing in the cache: %s of files, %s, in %s.", plural(v.Reads, "read"),
		figures.Size(v.Bytes), plural(v.Searched, "rowset"))
	if v.Searched > 1 {
		add("%s have keys around this one, and each is asked until one has the row. Compactions merge them: fewer "+
			"are faster.", plural(v.Searched+v.NotSearched, "rowset"))
	}
	if v.Searched == 1 && v.NotSearched > 0 {
		add("Keys around this one are in %s too. That costs this read nothing, since the row was found before they "+
			"were searched.", plural(v.NotSearched, "more rowset"))
	}
	wrong := v.Searched - v.Excluded
	if found >= 0 {
		wrong--
	}
	if wrong > 0 {
		add("In %s the bloom filter did not exclude the key although the row is not there in this state.",
			plural(wrong, "rowset"))
	}
	if found < 0 {
		return list
	}
	step := &trace.Steps[found]
	if step.Redos >= manyDeltas {
		add("%s are applied to the row: a delta compaction shortens that.", plural(step.Redos, "REDO change"))
	}
	if step.Undos >= manyDeltas {
		add("%s are taken back, because the state is in the past.", plural(step.Undos, "UNDO change"))
	}
	if f := largestRead(step.Reads); f.Bytes >= muchRead && 4*f.Bytes >= v.Bytes {
		add("The largest part of the bytes is %s: %s. A cblock, the part of a file that has one checksum, is read as "+
			"a whole, also for one cell.", celltext.Printable(f.File), figures.Size(f.Bytes))
	}
	if columns := columnReads(step); !step.RowFile && columns > 10 {
		add("%s of the reads are for columns, each in a file of its own. A table with row files (the option RowFile) "+
			"reads one place instead.", figures.Thousands(int64(columns)))
	}
	return list
}

// largestRead returns the file of which most was read.
func largestRead(list []rowset.FileReads) (largest rowset.FileReads) {
	for _, f := range list {
		if f.Bytes > largest.Bytes {
			largest = f
		}
	}
	return largest
}

// columnReads returns the number of reads of column files.
func columnReads(s *rowset.TraceStep) (n int) {
	for _, f := range s.Reads {
		if strings.HasPrefix(f.File, "column ") {
			n += f.Reads
		}
	}
	return n
}

// tableQuery returns the parameters of a page of the table about the object with an ID.
func (r *rowRequest) tableQuery(name string, id uint64) url.Values {
	return url.Values{"table": {r.q.Table.Name()}, name: {strconv.FormatUint(id, 10)}}
}
