package schemafile

import (
	"strconv"

	"github.com/oribi-db/oribi/internal/celltext"
	"github.com/oribi-db/oribi/internal/when"
	"github.com/oribi-db/oribi/schema"
)

// Append appends t as one line of JSON, without the line end, in the form that Read parses.
func Append(dst []byte, t *Table) []byte {
	dst = appendString(append(dst, `{"name":`...), t.Name)
	if t.ID != "" {
		dst = appendString(append(dst, `,"id":`...), t.ID)
	}
	dst = strconv.AppendUint(append(dst, `,"schema_version":`...), uint64(t.SchemaVersion), 10)
	dst = appendString(append(dst, `,"history":`...), when.FormatAge(t.History))
	dst = strconv.AppendUint(append(dst, `,"history_floor":`...), t.HistoryFloor, 10)
	dst = append(t.appendRest(append(dst, ',')), `"columns":`...)
	return append(AppendColumns(dst, t.Columns, t.Keys), '}')
}

// appendRest appends members that tables need not have, each with a comma after it.
func (t *Table) appendRest(dst []byte) []byte {
	if t.Comment != "" {
		dst = append(appendString(append(dst, `"comment":`...), t.Comment), ',')
	}
	if on := t.RowFile.Choice(); on != nil {
		dst = append(strconv.AppendBool(append(dst, `"row_file":`...), *on), ',')
	}
	if t.Expires.Column != "" {
		dst = append(t.Expires.append(append(dst, `"expires":`...)), ',')
	}
	if len(t.Indexes) > 0 {
		dst = append(dst, `"indexes":`...)
		for i := range t.Indexes {
			dst = t.Indexes[i].append(append(dst, "[,"[min(i, 1)]))
		}
		dst = append(dst, "],"...)
	}
	return dst
}

// AppendColumns appends an array of columns with their IDs, of which the first keys are in the key.
func AppendColumns(dst []byte, columns []schema.Column, keys int) []byte {
	dst = append(dst, '[')
	for i := range columns {
		if i > 0 {
			dst = append(dst, ',')
		}
		dst = strconv.AppendInt(append(dst, `{"id":`...), int64(columns[i].ID), 10)
		dst = appendColumn(append(dst, ','), &columns[i], i < keys)
	}
	return append(dst, ']')
}

// AppendNew appends the schema file of a table that does not exist yet, one column per line,
// without the last line end.
func AppendNew(dst []byte, t *Table) []byte {
	dst = append(dst, '{')
	if t.History != 0 {
		dst = append(appendString(append(dst, `"history":`...), when.FormatAge(t.History)), ',')
	}
	dst = append(t.appendRest(dst), `"columns":[`...)
	for i := range t.Columns {
		if i > 0 {
			dst = append(dst, ',')
		}
		dst = appendColumn(append(dst, "\n{"...), &t.Columns[i], i < t.Keys)
	}
	return append(dst, "]}"...)
}

// appendColumn appends the members of a column and the end of its object.
func appendColumn(dst []byte, c *schema.Column, key bool) []byte {
	dst = appendString(append(dst, `"name":`...), c.Name)
	dst = appendString(append(dst, `,"type":`...), c.TypeName())
	dst = strconv.AppendBool(append(dst, `,"key":`...), key)
	dst = strconv.AppendBool(append(dst, `,"nullable":`...), c.Nullable)
	if c.Immutable {
		dst = append(dst, `,"immutable":true`...)
	}
	if c.AutoIncrement {
		dst = append(dst, `,"auto_incrementing":true`...)
	}
	if c.Default != nil {
		dst = celltext.AppendJSON(append(dst, `,"default":`...), c, c.Default)
	}
	dst = appendString(append(dst, `,"encoding":`...), c.Encoding.FileName())
	dst = appendString(append(dst, `,"compression":`...), c.Compression.FileName())
	dst = strconv.AppendInt(append(dst, `,"block_size":`...), int64(c.BlockBytes), 10)
	if c.Comment != "" {
		dst = appendString(append(dst, `,"comment":`...), c.Comment)
	}
	return append(dst, '}')
}

func appendString(dst []byte, s string) []byte { return celltext.AppendQuoted(dst, []byte(s)) }
