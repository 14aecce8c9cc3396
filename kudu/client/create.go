package client

import (
	"context"
	"errors"
	"fmt"

	"google.golang.org/protobuf/proto"

	"github.com/oribi-db/oribi/internal/kudupb"
	"github.com/oribi-db/oribi/internal/kudurow"
	pb "github.com/oribi-db/oribi/internal/kudurpcpb"
	"github.com/oribi-db/oribi/schema"
)

// TableSpec describes a new table.
type TableSpec struct {
	Name string
	// Schema has the columns; their IDs are ignored. The default of a column is also its read
	// default. A compression that Kudu does not have becomes the nearest one.
	Schema       *schema.Schema
	Partitioning Partitioning
	Replicas     int    // of each tablet, odd; 0 is the cluster's default, usually 3
	Owner        string // empty is the client's user
	Comment      string
	Config       map[string]string // such as kudu.table.history_max_age_sec
}

// CreateTable creates a table and waits until all its tablets are there. Errors: ErrExists;
// ErrUnsupported for a column that Kudu does not have, or that its clients cannot read; ErrSchema;
// ErrNoColumn for a partitioning. If ctx ends early, the table may be created all the same.
func (c *Client) CreateTable(ctx context.Context, spec *TableSpec) (*Table, error) {
	ctx, cancel := c.limit(ctx)
	defer cancel()
	t, err := c.create(ctx, spec)
	if err != nil {
		return nil, fmt.Errorf("table %q: %w", spec.Name, err)
	}
	return t, nil
}

func (c *Client) create(ctx context.Context, spec *TableSpec) (*Table, error) {
	request, features, err := spec.message()
	if err != nil {
		return nil, err
	}
	var m pb.CreateTableResponsePB
	unsure, err := c.master(ctx, "CreateTable", request, &m, features...)
	id := &pb.TableIdentifierPB{TableId: m.TableId}
	if unsure && errors.Is(err, ErrExists) {
		id, err = c.created(ctx, request)
	}
	if err != nil {
		return nil, err
	}
	for a := (attempts{c: c}); ; {
		var m pb.IsCreateTableDoneResponsePB
		if _, err := c.master(ctx, "IsCreateTableDone", &pb.IsCreateTableDoneRequestPB{Table: id}, &m); err != nil {
			return nil, err
		}
		if m.GetDone() {
			return c.open(ctx, id)
		}
		if err := a.poll(ctx, "the tablets are not there yet"); err != nil {
			return nil, err
		}
	}
}

// message returns the request for a new table and the features that a master needs for it.
func (spec *TableSpec) message() (*pb.CreateTableRequestPB, []uint32, error) {
	if err := kudurow.Check(spec.Schema); err != nil {
		return nil, nil, err
	}
	created, err := spec.Schema.Created()
	if err != nil {
		return nil, nil, err
	}
	by, bounds, err := spec.Partitioning.message(created)
	if err != nil {
		return nil, nil, err
	}
	m := &pb.CreateTableRequestPB{Name: &spec.Name, Schema: kudurow.WireSchema(created), PartitionSchema: by,
		SplitRowsRangeBounds: bounds, ExtraConfigs: spec.Config}
	if spec.Replicas != 0 {
		m.NumReplicas = proto.Int32(int32(spec.Replicas))
	}
	if spec.Owner != "" {
		m.Owner = &spec.Owner
	}
	if spec.Comment != "" {
		m.Comment = &spec.Comment
	}
	return m, kudurow.Features(created, by, bounds != nil), nil
}

// created returns the ID of the table of a request whose answer was lost. Another table of that name
// is ErrExists.
func (c *Client) created(ctx context.Context, request *pb.CreateTableRequestPB) (*pb.TableIdentifierPB, error) {
	m, err := c.tableSchema(ctx, byName(request.GetName()))
	if err != nil {
		return nil, err
	}
	if !sameColumns(m.Schema, request.Schema) {
		return nil, fmt.Errorf("a table with other columns: %w", ErrExists)
	}
	return &pb.TableIdentifierPB{TableId: m.TableId}, nil
}

// sameColumns reports whether two schemas have the same columns, apart from their IDs.
func sameColumns(a, b *kudupb.SchemaPB) bool {
	if len(a.GetColumns()) != len(b.GetColumns()) {
		return false
	}
	for i, c := range a.GetColumns() {
		of := b.Columns[i]
		if c.GetName() != of.GetName() || c.GetType() != of.GetType() || c.GetIsKey() != of.GetIsKey() ||
			c.GetIsNullable() != of.GetIsNullable() || !proto.Equal(c.TypeAttributes, of.TypeAttributes) {
			return false
		}
	}
	return true
}
