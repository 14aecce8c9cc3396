package client

import (
	"fmt"
	"slices"

	"google.golang.org/protobuf/proto"

	"github.com/oribi-db/oribi/internal/bind"
	"github.com/oribi-db/oribi/internal/fault"
	"github.com/oribi-db/oribi/internal/kudupb"
	"github.com/oribi-db/oribi/internal/kudurow"
	"github.com/oribi-db/oribi/internal/kuduwal"
	"github.com/oribi-db/oribi/schema"
)

// Partitioning is how a table's rows are divided among its tablets: by hashes of key columns, and
// within them by ranges of their values. The zero value is one tablet.
type Partitioning struct {
	Hash  []Hash
	Range []string // names of the key columns whose values the ranges bound; nil: there are no ranges
	// Ranges are the ranges of a new table; nil is one without bounds. Of an opened table they are
	// only those with hashes of their own.
	Ranges []Range
}

// Hash divides rows by a hash of some key columns.
type Hash struct {
	Columns []string
	Buckets int // 2 or more
	Seed    uint32
}

// Range has the rows with From <= values < To in the columns of Partitioning.Range. A value that is
// nil, or missing at the end, is the least of its column.
type Range struct {
	From, To []any  // Go values, as in rows; without any, there is no bound
	Hash     []Hash // nil: the table's hashes. Own hashes are as many as the table's
}

// message returns p as a master expects it: in bounds if all ranges have the hashes of the table,
// otherwise within the message.
func (p *Partitioning) message(s *schema.Schema) (
	by *kudupb.PartitionSchemaPB, bounds *kudupb.RowOperationsPB, err error,
) {
	by = &kudupb.PartitionSchemaPB{RangeSchema: &kudupb.PartitionSchemaPB_RangeSchemaPB{}}
	if by.HashSchema, err = hashMessages(p.Hash, s); err != nil {
		return nil, nil, err
	}
	if by.RangeSchema.Columns, err = columnMessages(p.Range, s); err != nil {
		return nil, nil, err
	}
	own := slices.ContainsFunc(p.Ranges, func(r Range) bool { return r.Hash != nil })
	var all kudurow.Rows
	for i := range p.Ranges {
		r := &p.Ranges[i]
		if err := r.check(p, i); err != nil {
			return nil, nil, err
		}
		if !own {
			if err := r.appendBounds(&all, s, p.Range); err != nil {
				return nil, nil, err
			}
			continue
		}
		m, err := r.message(p, s)
		if err != nil {
			return nil, nil, err
		}
		by.CustomHashSchemaRanges = append(by.CustomHashSchemaRanges, m)
	}
	if all.N > 0 {
		bounds = all.Message()
	}
	return by, bounds, nil
}

// check checks range i of p.
func (r *Range) check(p *Partitioning, i int) error {
	switch {
	case len(p.Range) == 0:
		return schemaError("range %d of a table that is not divided by ranges: set Partitioning.Range", i)
	case r.Hash != nil && len(r.Hash) != len(p.Hash):
		return schemaError("range %d has %d hashes, the table %d: they must be as many", i, len(r.Hash), len(p.Hash))
	}
	return nil
}

// message returns a range with its hashes, its own or p's.
func (r *Range) message(p *Partitioning, s *schema.Schema) (
	*kudupb.PartitionSchemaPB_RangeWithHashSchemaPB, error,
) {
	hash := r.Hash
	if hash == nil {
		hash = p.Hash
	}
	hashes, err := hashMessages(hash, s)
	if err != nil {
		return nil, err
	}
	var rows kudurow.Rows
	if err := r.appendBounds(&rows, s, p.Range); err != nil {
		return nil, err
	}
	encoded, err := proto.Marshal(rows.Message())
	return &kudupb.PartitionSchemaPB_RangeWithHashSchemaPB{RangeBounds: encoded, HashSchema: hashes}, err
}

// appendBounds appends the lower and the upper bound of r as row operations.
func (r *Range) appendBounds(rows *kudurow.Rows, s *schema.Schema, columns []string) error {
	e := kudurow.NewEncoder(s)
	for _, bound := range []struct {
		op     kudurow.Operation
		values []any
	}{{kudupb.RowOperationType_RANGE_LOWER_BOUND, r.From}, {kudupb.RowOperationType_RANGE_UPPER_BOUND, r.To}} {
		if len(bound.values) > len(columns) {
			return schemaError("a bound of %d values for ranges of %d columns", len(bound.values), len(columns))
		}
		cells := make([][]byte, len(s.Columns))
		for i, v := range bound.values {
			c := s.Index(columns[i])
			if c < 0 {
				return s.NoColumn(columns[i])
			}
			if v == nil {
				continue
			}
			cell, err := bind.Append(nil, &s.Columns[c], v)
			if err != nil {
				return schemaError("bound of a range: column %q: %v", columns[i], err)
			}
			cells[c] = cell
		}
		if err := e.AppendBound(rows, bound.op, cells); err != nil {
			return schemaError("bound of a range: %v", err)
		}
	}
	return nil
}

func hashMessages(hashes []Hash, s *schema.Schema) (out []*kudupb.PartitionSchemaPB_HashBucketSchemaPB, err error) {
	for _, h := range hashes {
		if h.Buckets < 2 || len(h.Columns) == 0 {
			return nil, schemaError("a hash of %d columns with %d buckets: it needs a column and 2 buckets",
				len(h.Columns), h.Buckets)
		}
		m := &kudupb.PartitionSchemaPB_HashBucketSchemaPB{NumBuckets: proto.Int32(int32(h.Buckets)),
			Seed: proto.Uint32(h.Seed)}
		if m.Columns, err = columnMessages(h.Columns, s); err != nil {
			return nil, err
		}
		out = append(out, m)
	}
	return out, nil
}

// columnMessages returns the names of key columns as messages.
func columnMessages(names []string, s *schema.Schema) (out []*kudupb.PartitionSchemaPB_ColumnIdentifierPB, err error) {
	for _, name := range names {
		switch i := s.Index(name); {
		case i < 0:
			return nil, s.NoColumn(name)
		case i >= s.Keys:
			return nil, schemaError("the table cannot be divided by column %q, which is not in the key", name)
		}
		out = append(out, &kudupb.PartitionSchemaPB_ColumnIdentifierPB{
			Identifier: &kudupb.PartitionSchemaPB_ColumnIdentifierPB_Name{Name: name}})
	}
	return out, nil
}

// partitioningOf returns the partitioning that a master describes. Errors: ErrCorrupt.
func partitioningOf(m *kudupb.PartitionSchemaPB, s *schema.Schema) (p Partitioning, err error) {
	if p.Hash, err = hashesOf(m.GetHashSchema(), s); err != nil {
		return p, err
	}
	columns, err := columnsOf(m.GetRangeSchema().GetColumns(), s)
	if err != nil {
		return p, err
	}
	if m.GetRangeSchema() == nil { // by the primary key
		for i := range s.Keys {
			if !s.Columns[i].AutoIncrement {
				columns = append(columns, i)
			}
		}
	}
	for _, c := range columns {
		p.Range = append(p.Range, s.Columns[c].Name)
	}
	for _, r := range m.GetCustomHashSchemaRanges() {
		lower, upper, err := kuduwal.RangeBounds(r.RangeBounds, s)
		if err != nil {
			return p, err
		}
		own := Range{From: boundOf(lower, columns, s), To: boundOf(upper, columns, s)}
		if own.Hash, err = hashesOf(r.HashSchema, s); err != nil {
			return p, err
		}
		p.Ranges = append(p.Ranges, own)
	}
	return p, nil
}

// boundOf returns the values of the columns of a range that cells sets, up to the last one, nil for
// those between that are not set.
func boundOf(cells [][]byte, columns []int, s *schema.Schema) (values []any) {
	if cells == nil {
		return nil
	}
	for i, c := range columns {
		if cells[c] == nil {
			continue
		}
		for len(values) < i {
			values = append(values, nil)
		}
		values = append(values, bind.Value(&s.Columns[c], cells[c]))
	}
	return values
}

func hashesOf(m []*kudupb.PartitionSchemaPB_HashBucketSchemaPB, s *schema.Schema) (hashes []Hash, err error) {
	for _, h := range m {
		columns, err := columnsOf(h.Columns, s)
		if err != nil {
			return nil, err
		}
		out := Hash{Buckets: int(h.GetNumBuckets()), Seed: h.GetSeed()}
		for _, c := range columns {
			out.Columns = append(out.Columns, s.Columns[c].Name)
		}
		hashes = append(hashes, out)
	}
	return hashes, nil
}

// columnsOf returns the indexes of key columns. Errors: ErrCorrupt.
func columnsOf(m []*kudupb.PartitionSchemaPB_ColumnIdentifierPB, s *schema.Schema) (columns []int, err error) {
	for _, id := range m {
		i := s.Index(id.GetName())
		if id.GetName() == "" {
			i = s.IndexID(schema.ColumnID(id.GetId()))
		}
		if i < 0 || i >= s.Keys {
			return nil, fault.Corruptf("the table is divided by a column that is not in the key")
		}
		columns = append(columns, i)
	}
	return columns, nil
}

func schemaError(format string, args ...any) error {
	return fmt.Errorf(format+": %w", append(args, fault.ErrSchema)...)
}
