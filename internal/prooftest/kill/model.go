package kill

import (
	"bufio"
	"errors"
	"fmt"
	"maps"
	"math/rand/v2"
	"os"
	"slices"
	"strconv"
	"strings"

	"github.com/oribi-db/oribi/internal/prooftest/values"
)

// killTables are the tables of a Life; each batch of apply writes to both.
var killTables = []string{"a", "b"}

// Their columns are a key, the number of the batch that wrote the row, and a text.
const killSchema = `{"columns":[{"name":"k","type":"int64","key":true},{"name":"n","type":"int64"},{"name":"s","type":"string","nullable":true}]}`

// Keys: the head, a row in which each batch of apply stores its number; rows that change often;
// wide rows; and rows that only loads write.
const (
	headKey  = -1
	manyKeys = 150
	wideKey  = 1000 // to wideKey + wideKeys − 1
	wideKeys = 8
	loadKeys = 700
)

// Table c: the rows are numerous and large enough to be ingested.
const (
	scratchRows  = 330
	scratchPer   = 100
	scratchBytes = 30_000
	noScratch    = -1
)

type killRow struct {
	n int64
	s string
	// null means that the text is NULL.
	null bool
}

func (r killRow) line(key int64) string {
	s := `"` + r.s + `"`
	if r.null {
		s = "null"
	}
	return fmt.Sprintf(`{"k":%d,"n":%d,"s":%s}`, key, r.n, s)
}

// killState contains the rows of the tables.
type killState [2]map[int64]killRow

// killChange is a row after a change.
type killChange struct {
	table int
	key   int64
	row   killRow
	gone  bool
}

// killEvent is the set of changes of one batch of apply, or of a part of a load.
type killEvent struct {
	n       int64 // the number of the batch
	changes []killChange
}

func (s *killState) apply(list []killChange) {
	for _, c := range list {
		if c.gone {
			delete(s[c.table], c.key)
		} else {
			s[c.table][c.key] = c.row
		}
	}
}

func newKillState() killState { return killState{{}, {}} }

func (s *killState) clone() killState { return killState{maps.Clone(s[0]), maps.Clone(s[1])} }

// lines returns the expected output of a scan of a table.
func (s *killState) lines(table int) []string {
	var out []string
	for _, k := range slices.Sorted(maps.Keys(s[table])) {
		out = append(out, s[table][k].line(k))
	}
	return out
}

// killModel is the known content of the store.
type killModel struct {
	now     killState
	events  []killEvent // all events so far
	acked   []ackedTime
	next    int64 // number of the next batch; numbers are never reused
	scratch int64 // rows of table c; noScratch
}

// ackedTime is an acknowledged timestamp and the number of events visible at it.
type ackedTime struct {
	ts     uint64
	events int
}

func newKillModel() *killModel { return &killModel{now: newKillState(), next: 1, scratch: noScratch} }

// adopt applies an event to the model.
func (m *killModel) adopt(e killEvent) {
	m.now.apply(e.changes)
	m.events = append(m.events, e)
}

// at returns the state after the first events.
func (m *killModel) at(events int) killState {
	s := newKillState()
	for _, e := range m.events[:events] {
		s.apply(e.changes)
	}
	return s
}

func killText(rng *rand.Rand, n int) string {
	b := make([]byte, n)
	for i := 0; i < n; {
		for bits, left := rng.Uint64(), 10; left > 0 && i < n; left-- {
			b[i] = values.Letters[bits&63]
			bits >>= 6
			i++
		}
	}
	return string(b)
}

// text returns a random text of a row, or NULL.
func (m *killModel) text(rng *rand.Rand, row *killRow) {
	switch n := rng.IntN(12); n {
	case 0:
		row.s, row.null = "", true
	case 1:
		row.s, row.null = killText(rng, 2000+rng.IntN(6000)), false
	default:
		row.s, row.null = killText(rng, rng.IntN(40)), false
	}
}

// writeBatches writes a file of batches that succeed on the model's state.
func (m *killModel) writeBatches(rng *rand.Rand, name string, batches int, large bool) (list []killEvent, err error) {
	f, err := os.Create(name)
	if err != nil {
		return nil, err
	}
	w := bufio.NewWriter(f)
	state := m.now.clone()
	for range batches {
		g := &killBatch{rng: rng, m: m, state: &state, event: killEvent{n: m.next}}
		m.next++
		w.WriteString(g.line(large) + "\n")
		list = append(list, g.event)
	}
	return list, errors.Join(w.Flush(), f.Close())
}

// killBatch is a batch under construction.
type killBatch struct {
	rng   *rand.Rand
	m     *killModel
	state *killState
	event killEvent
	ops   []string
}

func (g *killBatch) line(large bool) string {
	for t := range killTables {
		g.put("upsert", t, headKey, killRow{n: g.event.n, null: true}, true, false)
	}
	if large {
		for range 40 {
			g.put("upsert", g.rng.IntN(2), wideKey+g.rng.Int64N(wideKeys),
				killRow{n: g.event.n, s: killText(g.rng, 60_000)}, true, true)
		}
	} else {
		for range 1 + g.rng.IntN(8) {
			g.any(g.rng.IntN(2), g.rng.Int64N(manyKeys))
		}
	}
	return `{"ops":[` + strings.Join(g.ops, ",") + `]}`
}

// any adds an operation that succeeds whether or not the row exists.
func (g *killBatch) any(table int, key int64) {
	row, live := g.state[table][key]
	if !live {
		row.null = true
	}
	n := g.rng.IntN(8)
	if n == 0 || n == 1 && live {
		op := "delete_ignore"
		if live && n == 0 {
			op = "delete"
		}
		g.ops = append(g.ops, fmt.Sprintf(`{"op":%q,"table":%q,"key":{"k":%d}}`, op, killTables[table], key))
		g.change(killChange{table: table, key: key, gone: true})
		return
	}
	setN, setS := true, n&1 == 0
	if setS {
		g.m.text(g.rng, &row)
	}
	row.n = g.event.n
	op := "upsert"
	switch {
	case live && n < 5:
		op = "update"
		if setS && n == 4 {
			setN, row.n = false, g.state[table][key].n
		}
	case live && n == 5: // changes nothing
		g.ops = append(g.ops, g.text("insert_ignore", table, key, row, true, setS))
		return
	case !live && n < 5:
		op = "insert"
	case !live && n == 5:
		g.ops = append(g.ops, g.text("update_ignore", table, key, row, true, setS))
		return
	}
	g.put(op, table, key, row, setN, setS)
}

func (g *killBatch) text(op string, table int, key int64, row killRow, setN, setS bool) string {
	cells := fmt.Sprintf(`"k":%d`, key)
	if setN {
		cells += fmt.Sprintf(`,"n":%d`, row.n)
	}
	if setS && row.null {
		cells += `,"s":null`
	} else if setS {
		cells += `,"s":"` + row.s + `"`
	}
	return fmt.Sprintf(`{"op":%q,"table":%q,"row":{%s}}`, op, killTables[table], cells)
}

func (g *killBatch) put(op string, table int, key int64, row killRow, setN, setS bool) {
	g.ops = append(g.ops, g.text(op, table, key, row, setN, setS))
	g.change(killChange{table: table, key: key, row: row})
}

func (g *killBatch) change(c killChange) {
	g.event.changes = append(g.event.changes, c)
	g.state.apply(g.event.changes[len(g.event.changes)-1:])
}

// writeRows writes rows with distinct keys for a load into table b, in random order. An empty text
// keeps the text of an existing row.
func (m *killModel) writeRows(rng *rand.Rand, name string, rows int) (e killEvent, err error) {
	e.n = m.next
	m.next++
	var b strings.Builder
	b.WriteString("k,n,s\n")
	for _, key := range rng.Perm(loadKeys)[:min(rows, loadKeys)] {
		row, live := m.now[1][int64(key)]
		if !live {
			row.null = true
		}
		row.n = e.n
		text := ""
		if rng.IntN(3) > 0 {
			text = killText(rng, 1+rng.IntN(60))
			row.s, row.null = text, false
		}
		fmt.Fprintf(&b, "%d,%d,%s\n", key, e.n, text)
		e.changes = append(e.changes, killChange{table: 1, key: int64(key), row: row})
	}
	return e, os.WriteFile(name, []byte(b.String()), 0o600)
}

// writeScratch writes the rows of table c, which are always the same.
func writeScratch(name string) error {
	f, err := os.Create(name)
	if err != nil {
		return err
	}
	w := bufio.NewWriter(f)
	w.WriteString("k,n,s\n")
	for k := range int64(scratchRows) {
		fmt.Fprintf(w, "%d,%d,%s\n", k, 0, scratchRow(k).s)
	}
	return errors.Join(w.Flush(), f.Close())
}

func scratchRow(k int64) killRow {
	return killRow{s: killText(rand.New(rand.NewPCG(uint64(k), 1)), scratchBytes)}
}

// parseStamps parses the timestamps that apply has written: complete lines in ascending order.
func parseStamps(text []byte) (list []uint64, err error) {
	if len(text) > 0 && text[len(text)-1] != '\n' {
		return nil, fmt.Errorf("incomplete timestamp %q", text[max(0, len(text)-40):])
	}
	for line := range strings.Lines(string(text)) {
		ts, err := strconv.ParseUint(strings.TrimSuffix(line, "\n"), 10, 64)
		if err != nil {
			return nil, err
		}
		list = append(list, ts)
	}
	return list, nil
}
