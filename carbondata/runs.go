package carbondata

import (
	"encoding/binary"
	"sort"

	"github.com/oribi-db/oribi/internal/fault"
)

// Runs: how often each entry of the data is repeated. Source: carbondata spec §7.7.
//
//	offset  width  field  meaning
//	0       2      start  first row, big-endian
//	2       2      count  rows, big-endian
//
// 10 rows with one value: 00 00 00 0a
const runLen = 4 // file format: never change

// readRuns reads the runs of surrogates or dates. It repeats dates, but not surrogates.
func (p *page) readRuns(runs []byte, width int, m *memory) error {
	if p.form != formSurrogates && p.form != formDates {
		return fault.Corruptf("they are of values that are not surrogates")
	}
	if err := m.take(offsetBytes * (len(runs) / runLen)); err != nil {
		return err
	}
	if p.form == formSurrogates {
		ends, err := runEnds(p.buffers.offsets, runs, p.rows)
		if err == nil && len(p.data) != len(ends)*width {
			err = fault.Corruptf("%d of them, and %d bytes of entries", len(ends), len(p.data))
		}
		p.ends, p.buffers.offsets = ends, ends
		return err
	}
	if err := m.take(width * p.rows); err != nil {
		return err
	}
	b, err := expandRuns(p.buffers.runs, p.data, width, runs, p.rows)
	p.data, p.buffers.runs = b, b
	return err
}

// runEnds returns the rows after each run, of which there are n, in the memory of dst if that is
// large enough.
func runEnds(dst []uint32, runs []byte, n int) ([]uint32, error) {
	if len(runs)%runLen != 0 {
		return nil, fault.Corruptf("%d bytes", len(runs))
	}
	if cap(dst) < len(runs)/runLen {
		dst = make([]uint32, len(runs)/runLen)
	}
	ends := dst[:0]
	row := 0
	for ; len(runs) > 0; runs = runs[runLen:] {
		start, count := int(int16(binary.BigEndian.Uint16(runs))), int(int16(binary.BigEndian.Uint16(runs[2:])))
		if start != row || count <= 0 || count > n-row {
			return nil, fault.Corruptf("%d rows from %d, at row %d of %d", count, start, row, n)
		}
		row += count
		ends = append(ends, uint32(row))
	}
	if row != n {
		return nil, fault.Corruptf("%d rows, want %d", row, n)
	}
	return ends, nil
}

// expandRuns repeats the entries in data, of the given width, as runs says. The result has n
// entries, in the memory of dst if that is large enough.
func expandRuns(dst, data []byte, width int, runs []byte, n int) ([]byte, error) {
	ends, err := runEnds(nil, runs, n)
	if err != nil {
		return nil, err
	}
	if len(data) != len(ends)*width {
		return nil, fault.Corruptf("%d runs, and %d bytes of entries", len(ends), len(data))
	}
	b := dst[:0]
	if cap(b) < n*width {
		b = make([]byte, 0, n*width)
	}
	for i, end := range ends {
		for len(b) < int(end)*width {
			b = append(b, data[i*width:(i+1)*width]...)
		}
	}
	return b, nil
}

// findCodes finds all surrogates in the dictionary, unless that has been done. A page without runs
// and row IDs does without until all codes are needed: a filter on other columns selects few rows.
func (p *page) findCodes() error {
	if p.codes != nil {
		return nil
	}
	n := len(p.data) / surrogateLen
	size := n
	if p.inverse != nil {
		size = p.rows
	}
	if cap(p.buffers.codes) < size {
		p.buffers.codes = make([]uint32, size)
	}
	codes := p.buffers.codes[:size]
	if err := p.codesFrom(codes[:n], 0); err != nil {
		return err
	}
	p.codes = codes
	if p.ends == nil || p.inverse == nil {
		return nil
	}
	// Row IDs need the codes of all entries. The runs move to their places from the last to the
	// first: no run begins before its index.
	for k := n - 1; k >= 0; k-- {
		code, start := p.codes[k], 0
		if k > 0 {
			start = int(p.ends[k-1])
		}
		for i := start; i < int(p.ends[k]); i++ {
			p.codes[i] = code
		}
	}
	p.ends = nil
	return nil
}

// codesFrom sets dst to the codes of the surrogates in the data, from surrogate i on.
func (p *page) codesFrom(dst []uint32, i int) error {
	if bad := p.dict.codes(dst, p.data[i*surrogateLen:]); bad >= 0 {
		i += bad
		return fault.Corruptf("entry %d: surrogate %x is not in the dictionary", i,
			p.data[i*surrogateLen:(i+1)*surrogateLen])
	}
	return nil
}

// code returns the code of an entry.
func (p *page) code(entry int) (uint32, error) {
	switch {
	case p.codes == nil:
		var code [1]uint32
		err := p.codesFrom(code[:], entry)
		return code[0], err
	case p.ends != nil:
		entry = p.runOf(entry)
	}
	return p.codes[entry], nil
}

// runOf returns the index of the run that an entry is in.
func (p *page) runOf(entry int) int {
	return sort.Search(len(p.ends), func(i int) bool { return int(p.ends[i]) > entry })
}
