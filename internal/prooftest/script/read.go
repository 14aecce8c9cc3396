package script

import (
	"github.com/oribi-db/oribi"
	"github.com/oribi-db/oribi/mvcc"
	"github.com/oribi-db/oribi/schema"
)

// Newest is the newest timestamp that a read sees.
func (rd *Read) Newest() mvcc.Timestamp {
	if rd.AsOf {
		return rd.At
	}
	return mvcc.Max
}

// Options are the read's options, without key and tests.
func (rd *Read) Options(s *schema.Schema) (opts []oribi.ReadOption) {
	if rd.AsOf {
		opts = append(opts, oribi.AsOf(rd.At))
	}
	if rd.Columns != nil {
		names := []string{}
		for _, c := range rd.Columns {
			names = append(names, s.Columns[c].Name)
		}
		opts = append(opts, oribi.Columns(names...))
	}
	return opts
}

// ColumnsOf are the indexes of the columns that are read.
func (rd *Read) ColumnsOf(s *schema.Schema) []int {
	if rd.Columns != nil {
		return rd.Columns
	}
	all := make([]int, len(s.Columns))
	for i := range all {
		all[i] = i
	}
	return all
}
