package client

import (
	"context"
	"errors"

	"github.com/oribi-db/oribi/internal/kudurpc"
)

// at makes one attempt of a call at a tablet server, at the first of its addresses that connects,
// with a new authn token if the server asks for one. call has all but the service. Errors:
// *kudurpc.Error; those of masters.
func (c *Client) at(ctx context.Context, server *replica, call *kudurpc.Call) error {
	call.Service = kudurpc.TabletServerService
	for renewed := false; ; renewed = true {
		_, finding := c.masters.current()
		err := c.first(ctx, server.addresses, call)
		if renewed || kudurpc.ClassOf(err) != kudurpc.AuthnToken {
			return err
		}
		c.masters.drop(finding)
		if err := c.findLeader(ctx); err != nil {
			return err
		}
	}
}

// first makes a call at the first of some addresses that connects.
func (c *Client) first(ctx context.Context, addresses []string, call *kudurpc.Call) (err error) {
	err = &kudurpc.Error{Server: "server without address", Method: call.Method, Tablet: call.Tablet, Err: errNoAddress}
	for _, address := range addresses {
		err = c.pool.Do(ctx, address, call)
		e, ok := err.(*kudurpc.Error)
		if !ok || kudurpc.ClassOf(err) != kudurpc.Unreachable || e.Method == call.Method {
			break // the call was made
		}
	}
	return err
}

var errNoAddress = errors.New("the masters know no address of the server")
