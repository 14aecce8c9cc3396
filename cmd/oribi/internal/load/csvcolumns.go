package load

import (
	"slices"
	"unicode/utf8"

	"github.com/oribi-db/oribi/batch"
	"github.com/oribi-db/oribi/cmd/oribi/internal/csvin"
	"github.com/oribi-db/oribi/internal/cell"
	"github.com/oribi-db/oribi/internal/celltext"
)

// csvColumns appends the records of a block to rows, column by column. A record that is no row ends
// the block: next reads it, and describes the error.
type csvColumns struct {
	possible bool
	parsers  []func(text []byte) (int64, bool) // by field; nil if the column has none
	missing  []int                             // columns of the table that no field sets
	size     int                               // of a row without byte strings
	skip     int                               // records to be read one by one, since one of them is no row

	block *csvin.Block
	text  []byte // of the block, in the memory of rows
	valid bool   // text is UTF-8
	sizes []int  // of the block's rows
}

func newCSVColumns(s *csvSource, given []bool) csvColumns {
	r := csvColumns{possible: !s.maker.raw && s.where == nil, size: s.width}
	r.parsers = make([]func([]byte) (int64, bool), len(s.places))
	for k, i := range s.places {
		if i >= 0 {
			r.parsers[k] = celltext.PlainParser(&s.schema.Columns[i])
			r.possible = r.possible && !slices.Contains(s.places[:k], i)
		}
	}
	for i := range s.schema.Columns {
		c := &s.schema.Columns[i]
		if !given[i] {
			r.missing = append(r.missing, i)
			r.size += len(c.Unset())
		} else if !c.Type.Variable() {
			r.size += c.Type.Width()
		}
	}
	return r
}

// appendRows appends some of the next records to dst, up to most of them. It returns false if it
// appends none, since next must read the next record.
func (s *csvSource) appendRows(dst *rows, most int) bool {
	r := &s.columns
	if !r.possible || most == 0 {
		return false
	}
	if r.skip > 0 {
		r.skip--
		return false
	}
	r.block = s.reader.Block(len(s.places), most)
	all := len(r.block.Ends)
	if all == 0 {
		return false
	}
	at, from := dst.len(), len(dst.text)
	dst.text = append(dst.text, r.block.Text[:r.block.Ends[all-1]]...)
	r.text = dst.text[from:len(dst.text):len(dst.text)]
	r.valid = utf8.Valid(r.text)
	r.sizes = r.sizes[:0]
	for range all {
		r.sizes = append(r.sizes, r.size)
	}
	n := all
	for k, i := range s.places {
		if i >= 0 {
			n = s.appendColumn(dst, k, n)
		}
	}
	for _, i := range r.missing {
		for range n {
			dst.vectors[i].AppendCell(s.schema.Columns[i].Unset())
		}
	}
	r.skip = all - n
	for i := range n {
		if dst.bytes >= maxBatchBytes {
			n, r.skip = i, 0
			break
		}
		dst.bytes += r.sizes[i]
		dst.largest = max(dst.largest, r.sizes[i])
		dst.places = append(dst.places, place{line: s.reader.Line + i})
		if s.upsert {
			dst.addSet(s.given)
		}
	}
	for _, v := range dst.vectors {
		v.Truncate(at + n)
	}
	s.reader.Take(n)
	return n > 0
}

// appendColumn appends the cells of field k of the first n records. It returns how many it appends:
// all, or those before a record that is no row.
func (s *csvSource) appendColumn(dst *rows, k, n int) int {
	v := dst.vectors[s.places[k]]
	switch parse := s.columns.parsers[k]; {
	case v.Type.Text():
		return s.appendTexts(dst, k, n)
	case parse == nil:
		v.Extend(n)
		return s.appendOthers(dst, k, 0, n)
	case v.Type.Width() == 1:
		return appendNumbers[int8](s, dst, k, n)
	case v.Type.Width() == 2:
		return appendNumbers[int16](s, dst, k, n)
	case v.Type.Width() == 4:
		return appendNumbers[int32](s, dst, k, n)
	}
	return appendNumbers[int64](s, dst, k, n)
}

func appendNumbers[T int8 | int16 | int32 | int64](s *csvSource, dst *rows, k, n int) int {
	r, v := &s.columns, dst.vectors[s.places[k]]
	parse, spans, width := r.parsers[k], r.block.Fields[k:], len(s.places)
	at := v.Len
	v.Extend(n)
	cells := batch.Raw[T](v)[at:]
	for i := range cells {
		span := spans[i*width]
		number, ok := parse(r.text[span.From:span.To])
		if !ok && s.appendOthers(dst, k, i, i+1) == i {
			return i
		} else if ok {
			cells[i] = T(number)
		}
	}
	return n
}

func (s *csvSource) appendTexts(dst *rows, k, n int) int {
	r, v := &s.columns, dst.vectors[s.places[k]]
	c, spans, width := &s.schema.Columns[s.places[k]], r.block.Fields[k:], len(s.places)
	at := v.Len
	v.Extend(n)
	cells := v.Bytes[at:]
	for i := range cells {
		span := spans[i*width]
		text := r.text[span.From:span.To:span.To]
		switch {
		case len(text) == 0:
			if s.appendOthers(dst, k, i, i+1) == i {
				return i
			}
			continue
		case len(text) > s.limit, !r.valid && !utf8.Valid(text), celltext.CheckLength(c, text) != nil:
			return i
		}
		cells[i] = text
		r.sizes[i] += len(text)
	}
	return n
}

// appendOthers sets the cells of field k of records [from, to), which no loop over a column can.
// The vector ends with the cells of all records of the block.
func (s *csvSource) appendOthers(dst *rows, k, from, to int) int {
	r, v := &s.columns, dst.vectors[s.places[k]]
	c := &s.schema.Columns[s.places[k]]
	at := dst.len()
	buffer := &s.fixed
	if c.Type.Variable() {
		buffer = &dst.text
	}
	for i := from; i < to; i++ {
		span := r.block.Fields[i*len(s.places)+k]
		text := r.text[span.From:span.To]
		var value []byte
		if len(text) == 0 && !r.block.Quoted(span) && s.emptyIsUnset(s.places[k]) {
			if s.upsert || s.places[k] < s.schema.Keys || c.Required() {
				return i
			}
			value = c.Unset()
		} else {
			s.fixed = s.fixed[:0]
			start := len(*buffer)
			var err error
			if *buffer, err = cell.FromField(*buffer, c, text); err != nil || len(*buffer)-start > s.limit {
				return i
			}
			value = (*buffer)[start:len(*buffer):len(*buffer)]
		}
		v.SetCell(at+i, value)
		r.sizes[i] += len(value) - c.Type.Width()
	}
	return to
}
