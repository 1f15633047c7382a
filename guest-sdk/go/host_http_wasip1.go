//go:build wasip1

package deedbox

import (
	"strconv"
	"time"

	"deedbox.local/deedbox/internal/wit/deedbox_activity_http"
	"deedbox.local/deedbox/internal/wit/runtime"
	"deedbox.local/deedbox/internal/wit/types"
)

func (wasmHost) Send(request HTTPRequest, options HTTPOptions) (*Response, error) {
	runtime.Begin()
	defer runtime.End()
	told := deedbox_activity_http.Options{
		Identity: identityOf(options.Identity), OnUnknown: uint8(options.OnUnknown), Lookup: lookupOf(options.Lookup),
	}
	result := deedbox_activity_http.Send(requestOf(request), told)
	if result.Tag() == types.ResultErr {
		return nil, ofHTTPError(result.Err())
	}
	return ofResponse(result.Ok()), nil
}

func identityOf(identity Identity) deedbox_activity_http.Identity {
	switch identity.Kind {
	case ByName:
		return deedbox_activity_http.MakeIdentityNamed(identity.Name)
	case ByBusiness:
		key := deedbox_activity_http.BusinessKey{Operation: identity.Operation, Key: identity.Key}
		return deedbox_activity_http.MakeIdentityBusiness(key)
	default:
		return deedbox_activity_http.MakeIdentityPositional()
	}
}

func requestOf(request HTTPRequest) deedbox_activity_http.Request {
	headers := make([]types.Tuple2[string, []byte], len(request.Headers))
	for i, header := range request.Headers {
		headers[i] = types.Tuple2[string, []byte]{F0: header.Name, F1: header.Value}
	}
	timeout := types.None[uint32]()
	if request.TimeoutMS != nil {
		timeout = types.Some(*request.TimeoutMS)
	}
	return deedbox_activity_http.Request{
		Method: request.Method, Url: request.URL, Headers: headers, Body: request.Body, TimeoutMs: timeout,
	}
}

func lookupOf(lookup *Lookup) types.Option[deedbox_activity_http.Lookup] {
	if lookup == nil {
		return types.None[deedbox_activity_http.Lookup]()
	}
	return types.Some(deedbox_activity_http.Lookup{
		Request:  requestOf(HTTPRequest{Method: "GET", URL: lookup.URL, Headers: lookup.Headers}),
		Found:    conditionOf(lookup.Found),
		Absent:   conditionOf(lookup.Absent),
		SettleMs: uint32(min(max(lookup.Settle, 0)/time.Millisecond, 1<<32-1)),
	})
}

func conditionOf(condition Condition) deedbox_activity_http.Condition {
	told := deedbox_activity_http.Condition{Statuses: condition.Statuses}
	if condition.Pointer != "" {
		told.Pointer = types.Some(condition.Pointer)
	}
	if condition.Equals != "" {
		told.Equals = types.Some(condition.Equals)
	}
	return told
}

func ofResponse(given deedbox_activity_http.Response) *Response {
	response := &Response{Status: int(given.Status), Source: Source(given.Source)}
	response.Headers = make([]HTTPHeader, len(given.Headers))
	for i, header := range given.Headers {
		response.Headers[i] = HTTPHeader{runtime.Text(header.F0), runtime.Bytes(header.F1)}
	}
	if given.Body.Tag() == deedbox_activity_http.Body_Bytes {
		response.Body = runtime.Bytes(given.Body.Bytes())
	} else {
		response.BodyNotKept = true
	}
	if given.EffectId.Tag() == types.OptionSome {
		response.EffectID = runtime.Text(given.EffectId.Some())
	}
	return response
}

func ofHTTPError(err deedbox_activity_http.Error) *Failure {
	switch err.Tag() {
	case deedbox_activity_http.Error_Denied:
		return Refusal(CodeDenied, err.Denied())
	case deedbox_activity_http.Error_EffectMismatch:
		return Refusal(CodeEffectMismatch, err.EffectMismatch())
	case deedbox_activity_http.Error_InFlight:
		return Refusal(CodeInFlight, "")
	case deedbox_activity_http.Error_OutcomeUnknown:
		return Refusal(CodeOutcomeUnknown, err.OutcomeUnknown())
	case deedbox_activity_http.Error_Unreachable:
		return Refusal(CodeUnreachable, err.Unreachable())
	case deedbox_activity_http.Error_TimedOut:
		return Refusal(CodeTimedOut, "")
	case deedbox_activity_http.Error_ResponseTooLarge:
		return Refusal(CodeResponseTooLarge, strconv.FormatUint(err.ResponseTooLarge(), 10))
	case deedbox_activity_http.Error_InvalidRequest:
		return Refusal(CodeInvalidRequest, err.InvalidRequest())
	default:
		return Refusal(CodeConnectionLost, err.ConnectionLost())
	}
}
