package client

import (
	"context"
	"fmt"
	"sync"

	"github.com/oribi-db/oribi/internal/kudurow"
	pb "github.com/oribi-db/oribi/internal/kudurpcpb"
	"github.com/oribi-db/oribi/internal/kuduschema"
	"github.com/oribi-db/oribi/schema"
)

// Table is a table as it was when it was opened: a later alteration by anyone is seen by opening it
// again. It is immutable and safe for concurrent use.
type Table struct {
	ID, Name     string
	Owner        string
	Comment      string
	Schema       *schema.Schema
	Partitioning Partitioning
	Replicas     int               // of each tablet
	Config       map[string]string // such as kudu.table.history_max_age_sec

	c           *Client
	partitioner *kudurow.Partitioner
	locations   *locations
	authz       *authz
}

// OpenTable returns the description of a table. Errors: ErrNoTable; ErrUnauthorized; ErrUnsupported
// and ErrCorrupt for a schema that this client does not know.
func (c *Client) OpenTable(ctx context.Context, name string) (*Table, error) {
	ctx, cancel := c.limit(ctx)
	defer cancel()
	t, err := c.open(ctx, byName(name))
	if err != nil {
		return nil, fmt.Errorf("table %q: %w", name, err)
	}
	return t, nil
}

func (c *Client) open(ctx context.Context, which *pb.TableIdentifierPB) (*Table, error) {
	m, err := c.tableSchema(ctx, which)
	if err != nil {
		return nil, err
	}
	t, err := newTable(m)
	if err != nil {
		return nil, err
	}
	t.c, t.authz = c, &authz{token: m.AuthzToken}
	t.locations = newLocations(c, t.ID)
	return t, nil
}

// newTable returns a table as a master describes it.
func newTable(m *pb.GetTableSchemaResponsePB) (*Table, error) {
	s, err := kuduschema.FromMessage(m.Schema)
	if err != nil {
		return nil, err
	}
	t := &Table{ID: string(m.TableId), Name: m.GetTableName(), Owner: m.GetOwner(), Comment: m.GetComment(), Schema: s,
		Replicas: int(m.GetNumReplicas()), Config: m.ExtraConfigs}
	if t.Partitioning, err = partitioningOf(m.PartitionSchema, s); err != nil {
		return nil, err
	}
	t.partitioner, err = kudurow.NewPartitioner(m.PartitionSchema, s)
	return t, err
}

// again opens t once more, by its ID. The tables share what they know of tablets and tokens.
func (t *Table) again(ctx context.Context) (*Table, error) {
	m, err := t.c.tableSchema(ctx, t.identifier())
	if err != nil {
		return nil, t.wrap(err)
	}
	now, err := newTable(m)
	if err != nil {
		return nil, t.wrap(err)
	}
	now.c, now.locations, now.authz = t.c, t.locations, t.authz
	return now, nil
}

// identifier names t by its ID, which renames do not change.
func (t *Table) identifier() *pb.TableIdentifierPB {
	return &pb.TableIdentifierPB{TableId: []byte(t.ID)}
}

// wrap adds the table's name to an error.
func (t *Table) wrap(err error) error {
	if err == nil {
		return nil
	}
	return fmt.Errorf("table %q: %w", t.Name, err)
}

// tableSchema asks the leading master for a table.
func (c *Client) tableSchema(
	ctx context.Context, which *pb.TableIdentifierPB,
) (*pb.GetTableSchemaResponsePB, error) {
	var m pb.GetTableSchemaResponsePB
	_, err := c.master(ctx, "GetTableSchema", &pb.GetTableSchemaRequestPB{Table: which}, &m)
	return &m, err
}

// SchemaVersion returns how often the table was altered, in any way: 0 if never. It waits until all
// tablets know the last alteration: before, OpenTable returns the schema before it. Errors: ErrNoTable.
func (t *Table) SchemaVersion(ctx context.Context) (uint32, error) {
	ctx, cancel := t.c.limit(ctx)
	defer cancel()
	m, err := t.altered(ctx)
	return m.GetSchemaVersion(), t.wrap(err)
}

// alteration asks the leading master how far the last alteration is.
func (t *Table) alteration(ctx context.Context) (*pb.IsAlterTableDoneResponsePB, error) {
	var m pb.IsAlterTableDoneResponsePB
	_, err := t.c.master(ctx, "IsAlterTableDone", &pb.IsAlterTableDoneRequestPB{Table: t.identifier()}, &m)
	return &m, err
}

// Statistics is what the masters know of a table's size. Both figures are some seconds old.
type Statistics struct {
	Rows      int64
	DiskBytes int64 // of all replicas
}

// Statistics returns the table's size. Errors: ErrNoTable.
func (t *Table) Statistics(ctx context.Context) (Statistics, error) {
	ctx, cancel := t.c.limit(ctx)
	defer cancel()
	var m pb.GetTableStatisticsResponsePB
	_, err := t.c.master(ctx, "GetTableStatistics", &pb.GetTableStatisticsRequestPB{Table: t.identifier()}, &m)
	return Statistics{m.GetLiveRowCount(), m.GetOnDiskSize()}, t.wrap(err)
}

// authz has the token by which servers that enforce access control let a client read or write a
// table. It is valid for minutes.
type authz struct {
	mu    sync.Mutex
	token *pb.SignedTokenPB // nil: there is none
}

// current returns the token.
func (a *authz) current() *pb.SignedTokenPB {
	a.mu.Lock()
	defer a.mu.Unlock()
	return a.token
}

// renewAuthz replaces the token old, which a server has refused, unless that was done meanwhile.
func (t *Table) renewAuthz(ctx context.Context, old *pb.SignedTokenPB) error {
	if t.authz.current() != old {
		return nil
	}
	m, err := t.c.tableSchema(ctx, t.identifier())
	if err != nil {
		return t.wrap(err)
	}
	t.authz.mu.Lock()
	defer t.authz.mu.Unlock()
	t.authz.token = m.AuthzToken
	return nil
}
