package client

import (
	"context"
	"fmt"
	"slices"

	"google.golang.org/protobuf/proto"

	"github.com/oribi-db/oribi/internal/bind"
	"github.com/oribi-db/oribi/internal/fault"
	"github.com/oribi-db/oribi/internal/kudupb"
	"github.com/oribi-db/oribi/internal/kudurow"
	pb "github.com/oribi-db/oribi/internal/kudurpcpb"
	"github.com/oribi-db/oribi/schema"
)

// Alteration is a step of AlterTable.
type Alteration struct {
	apply func(*altering) error
}

// altering is the request for an alteration as it grows.
type altering struct {
	table    *Table
	m        *pb.AlterTableRequestPB
	features []uint32
	dropped  []string // columns
}

func (a *altering) need(f pb.MasterFeature) {
	if !slices.Contains(a.features, uint32(f)) {
		a.features = append(a.features, uint32(f))
	}
}

func (a *altering) step(t pb.AlterTableRequestPB_StepType) *pb.AlterTableRequestPB_Step {
	s := &pb.AlterTableRequestPB_Step{Type: proto.Int32(int32(t))}
	a.m.AlterSchemaSteps = append(a.m.AlterSchemaSteps, s)
	return s
}

// AddColumn adds a column that is nullable or has a default, which rows that exist then have.
func AddColumn(c schema.Column) Alteration {
	return Alteration{func(a *altering) error {
		c.ReadDefault = c.Default
		one := &schema.Schema{Columns: []schema.Column{c}}
		if err := kudurow.Check(one); err != nil {
			return err
		}
		if slices.Contains(a.dropped, c.Name) {
			return fault.Unsupportedf("column %q is dropped and added: servers lose what is then written to it, so make "+
				"two alterations", c.Name)
		}
		if c.Key || c.Required() {
			return schemaError("column %q is added to rows without a value: it must be nullable or have a default", c.Name)
		}
		if c.Immutable {
			a.need(pb.MasterFeature_IMMUTABLE_COLUMN_ATTRIBUTE)
		}
		a.step(pb.AlterTableRequestPB_ADD_COLUMN).AddColumn =
			&pb.AlterTableRequestPB_AddColumn{Schema: kudurow.WireSchema(one).Columns[0]}
		return nil
	}}
}

// DropColumn removes a column that is not in the key.
func DropColumn(name string) Alteration {
	return Alteration{func(a *altering) error {
		a.dropped = append(a.dropped, name)
		a.step(pb.AlterTableRequestPB_DROP_COLUMN).DropColumn = &pb.AlterTableRequestPB_DropColumn{Name: &name}
		return nil
	}}
}

// RenameColumn renames a column.
func RenameColumn(from, to string) Alteration {
	return Alteration{func(a *altering) error {
		a.step(pb.AlterTableRequestPB_RENAME_COLUMN).RenameColumn =
			&pb.AlterTableRequestPB_RenameColumn{OldName: &from, NewName: &to}
		return nil
	}}
}

// SetDefault sets the default of a column for new rows, a Go value as in rows; nil removes it.
func SetDefault(column string, value any) Alteration {
	return Alteration{func(a *altering) error {
		s := a.table.Schema
		i := s.Index(column)
		if i < 0 {
			return s.NoColumn(column)
		}
		delta := &pb.ColumnSchemaDeltaPB{Name: &column}
		cell, err := bind.Append(nil, &s.Columns[i], value)
		switch {
		case value == nil:
			delta.RemoveDefault = proto.Bool(true)
		case err != nil:
			return schemaError("column %q: default: %v", column, err)
		default:
			delta.DefaultValue = cell
		}
		a.step(pb.AlterTableRequestPB_ALTER_COLUMN).AlterColumn = &pb.AlterTableRequestPB_AlterColumn{Delta: delta}
		return nil
	}}
}

// SetStorage sets how new files of a column are encoded. blockBytes 0 is the servers' default.
func SetStorage(column string, e schema.Encoding, c schema.Compression, blockBytes int32) Alteration {
	return Alteration{func(a *altering) error {
		a.step(pb.AlterTableRequestPB_ALTER_COLUMN).AlterColumn = &pb.AlterTableRequestPB_AlterColumn{
			Delta: &pb.ColumnSchemaDeltaPB{Name: &column, Encoding: proto.Int32(int32(e)),
				Compression: proto.Int32(int32(c.Codec())), BlockSize: &blockBytes}}
		return nil
	}}
}

// AddRange adds a range partition, which overlaps no other one.
func AddRange(r Range) Alteration {
	return Alteration{func(a *altering) error {
		bounds, err := a.bounds(&r)
		if err != nil {
			return err
		}
		add := &pb.AlterTableRequestPB_AddRangePartition{RangeBounds: bounds}
		if r.Hash != nil {
			a.need(pb.MasterFeature_RANGE_SPECIFIC_HASH_SCHEMA)
			hashes, err := hashMessages(r.Hash, a.table.Schema)
			if err != nil {
				return err
			}
			add.CustomHashSchema = &pb.AlterTableRequestPB_AddRangePartition_CustomHashSchema{HashSchema: hashes}
		}
		a.step(pb.AlterTableRequestPB_ADD_RANGE_PARTITION).AddRangePartition = add
		return nil
	}}
}

// DropRange removes a range partition, with exactly the bounds of r, and its rows.
func DropRange(r Range) Alteration {
	return Alteration{func(a *altering) error {
		bounds, err := a.bounds(&r)
		if err == nil {
			a.step(pb.AlterTableRequestPB_DROP_RANGE_PARTITION).DropRangePartition =
				&pb.AlterTableRequestPB_DropRangePartition{RangeBounds: bounds}
		}
		return err
	}}
}

// bounds returns the bounds of a range, for which the request has the schema.
func (a *altering) bounds(r *Range) (*kudupb.RowOperationsPB, error) {
	p := &a.table.Partitioning
	if err := r.check(p, 0); err != nil {
		return nil, err
	}
	a.need(pb.MasterFeature_ADD_DROP_RANGE_PARTITIONS)
	a.m.Schema = kudurow.WireSchema(a.table.Schema)
	var rows kudurow.Rows
	if err := r.appendBounds(&rows, a.table.Schema, p.Range); err != nil {
		return nil, err
	}
	return rows.Message(), nil
}

// RenameTable renames the table.
func RenameTable(to string) Alteration {
	return Alteration{func(a *altering) error { a.m.NewTableName = &to; return nil }}
}

// SetOwner sets the table's owner.
func SetOwner(to string) Alteration {
	return Alteration{func(a *altering) error { a.m.NewTableOwner = &to; return nil }}
}

// SetComment sets the table's comment.
func SetComment(to string) Alteration {
	return Alteration{func(a *altering) error { a.m.NewTableComment = &to; return nil }}
}

// SetConfig sets values of the table's configuration; others stay.
func SetConfig(values map[string]string) Alteration {
	return Alteration{func(a *altering) error { a.m.NewExtraConfigs = values; return nil }}
}

// AlterTable alters a table in the given steps, all or none, waits until all tablets know it, and
// returns the altered table. Errors: ErrNoTable; ErrSchema; ErrNoColumn; ErrUnsupported for a column that
// is dropped and added; ErrUnknownOutcome if the table was altered, by this call or another one, while the
// answer was lost.
func (c *Client) AlterTable(ctx context.Context, name string, steps ...Alteration) (*Table, error) {
	ctx, cancel := c.limit(ctx)
	defer cancel()
	t, err := c.open(ctx, byName(name))
	if err == nil {
		t, err = c.alter(ctx, t, steps)
	}
	if err != nil {
		return nil, fmt.Errorf("table %q: %w", name, err)
	}
	return t, nil
}

func (c *Client) alter(ctx context.Context, t *Table, steps []Alteration) (*Table, error) {
	a := &altering{table: t, m: &pb.AlterTableRequestPB{Table: t.identifier()}}
	for _, step := range steps {
		if err := step.apply(a); err != nil {
			return nil, err
		}
	}
	before, err := t.alteration(ctx)
	if err != nil {
		return nil, err
	}
	unsure, err := c.master(ctx, "AlterTable", a.m, &pb.AlterTableResponsePB{}, a.features...)
	if err != nil {
		if unsure {
			err = t.unknown(ctx, before.GetSchemaVersion(), err)
		}
		return nil, err
	}
	if _, err := t.altered(ctx); err != nil {
		return nil, err
	}
	return c.open(ctx, t.identifier())
}

// altered waits until all tablets know the last alteration.
func (t *Table) altered(ctx context.Context) (*pb.IsAlterTableDoneResponsePB, error) {
	for a := (attempts{c: t.c}); ; {
		m, err := t.alteration(ctx)
		if err != nil || m.GetDone() {
			return m, err
		}
		if err := a.poll(ctx, "not all tablets know the alteration yet"); err != nil {
			return nil, err
		}
	}
}

// unknown returns err as the error of an alteration of which an attempt's answer was lost. If the
// table was not altered since version before, err is all there is to say.
func (t *Table) unknown(ctx context.Context, before uint32, err error) error {
	m, lookup := t.alteration(ctx)
	switch {
	case lookup != nil:
		return fmt.Errorf("%w: %w", ErrUnknownOutcome, err)
	case m.GetSchemaVersion() == before:
		return err
	}
	return fmt.Errorf("%w: the schema has version %d, before it was %d: %w", ErrUnknownOutcome,
		m.GetSchemaVersion(), before, err)
}
