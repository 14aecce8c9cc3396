package output

import (
	"bytes"

	"github.com/oribi-db/oribi/batch"
	"github.com/oribi-db/oribi/internal/celltext"
	"github.com/oribi-db/oribi/schema"
)

// csvRows prints RFC 4180 with a header; lines end in \n. NULL is an empty field, the empty string
// a quoted one.
type csvRows struct {
	columns []schema.Column
}

func (r *csvRows) begin(dst []byte) []byte {
	for i := range r.columns {
		if i > 0 {
			dst = append(dst, ',')
		}
		dst = append(dst, r.columns[i].Name...)
		dst = quoteFrom(dst, len(dst)-len(r.columns[i].Name))
	}
	return append(dst, '\n')
}

func (r *csvRows) row(dst []byte, vectors []*batch.Vector, i int) []byte {
	for k, v := range vectors {
		if k > 0 {
			dst = append(dst, ',')
		}
		value := v.Cell(i)
		if value == nil {
			continue
		}
		from := len(dst)
		dst = celltext.AppendText(dst, &r.columns[k], value)
		if v.Type.Variable() {
			dst = quoteFrom(dst, from)
		}
	}
	return append(dst, '\n')
}

func (r *csvRows) flush(dst []byte) []byte { return dst }

func (r *csvRows) end(dst []byte) []byte { return dst }

// special marks the bytes that need a quoted field.
var special = [256]bool{',': true, '"': true, '\r': true, '\n': true}

func isPlain(field []byte) bool {
	for _, b := range field {
		if special[b] {
			return false
		}
	}
	return true
}

// quoteFrom quotes the field dst[from:] if it is empty or contains special bytes.
func quoteFrom(dst []byte, from int) []byte {
	field := dst[from:]
	if len(field) > 0 && isPlain(field) {
		return dst
	}
	field = bytes.ReplaceAll(field, []byte{'"'}, []byte{'"', '"'})
	dst = append(append(dst[:from], '"'), field...)
	return append(dst, '"')
}
