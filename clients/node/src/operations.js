// Every call of the API. Made by clients/make of the OpenAPI document. Do not edit.

import { segment } from "./request.js";

/** The calls; `Client` adds how they are made. */
export class Operations {
  getLiveness(options = {}) {
    return this.request("GET", "/health/live", { answer: "json" }, options);
  }

  getReadiness(options = {}) {
    return this.request("GET", "/health/ready", { answer: "json" }, options);
  }

  reportProviderEvents(provider, token, body, options = {}) {
    return this.request("POST", `/hooks/${segment(provider)}/${segment(token)}`, { answer: "nothing", body, bodyType: "application/octet-stream" }, options);
  }

  getMetrics(options = {}) {
    return this.request("GET", "/metrics", { answer: "text" }, options);
  }

  showUnsubscribe(token, options = {}) {
    return this.request("GET", `/unsubscribe/${segment(token)}`, { answer: "text" }, options);
  }

  unsubscribe(token, options = {}) {
    return this.request("POST", `/unsubscribe/${segment(token)}`, { answer: "text" }, options);
  }

  listAccounts(options = {}) {
    return this.request("GET", "/v1/accounts", { answer: "json", query: ["limit", "cursor"] }, options);
  }

  allAccounts(options = {}) {
    return this.pages((one) => this.listAccounts(one), options);
  }

  createAccount(body, options = {}) {
    return this.request("POST", "/v1/accounts", { answer: "json", body, query: ["dry_run"] }, options);
  }

  getAccount(id, options = {}) {
    return this.request("GET", `/v1/accounts/${segment(id)}`, { answer: "json" }, options);
  }

  replaceAccount(id, body, options = {}) {
    return this.request("PUT", `/v1/accounts/${segment(id)}`, { answer: "json", body }, options);
  }

  changeAccount(id, body, options = {}) {
    return this.request("PATCH", `/v1/accounts/${segment(id)}`, { answer: "json", body }, options);
  }

  deleteAccount(id, options = {}) {
    return this.request("DELETE", `/v1/accounts/${segment(id)}`, { answer: "nothing", query: ["force"] }, options);
  }

  activateAccount(id, options = {}) {
    return this.request("POST", `/v1/accounts/${segment(id)}/activate`, { answer: "json" }, options);
  }

  getAccountHook(id, options = {}) {
    return this.request("GET", `/v1/accounts/${segment(id)}/hook`, { answer: "json" }, options);
  }

  putAccountHook(id, body, options = {}) {
    return this.request("PUT", `/v1/accounts/${segment(id)}/hook`, { answer: "json", body }, options);
  }

  deleteAccountHook(id, options = {}) {
    return this.request("DELETE", `/v1/accounts/${segment(id)}/hook`, { answer: "nothing" }, options);
  }

  listAccountHookEvents(id, options = {}) {
    return this.request("GET", `/v1/accounts/${segment(id)}/hook/events`, { answer: "json", query: ["status", "limit", "cursor"] }, options);
  }

  allAccountHookEvents(id, options = {}) {
    return this.pages((one) => this.listAccountHookEvents(id, one), options);
  }

  rotateAccountHook(id, options = {}) {
    return this.request("POST", `/v1/accounts/${segment(id)}/hook/rotate`, { answer: "json" }, options);
  }

  suspendAccount(id, options = {}) {
    return this.request("POST", `/v1/accounts/${segment(id)}/suspend`, { answer: "json" }, options);
  }

  testAccount(id, body, options = {}) {
    return this.request("POST", `/v1/accounts/${segment(id)}/test`, { answer: "json", body }, options);
  }

  listArchive(options = {}) {
    return this.request("GET", "/v1/archive", { answer: "json", query: ["since", "until", "limit", "cursor"] }, options);
  }

  allArchive(options = {}) {
    return this.pages((one) => this.listArchive(one), options);
  }

  getArchived(id, options = {}) {
    return this.request("GET", `/v1/archive/${segment(id)}`, { answer: "json" }, options);
  }

  deleteArchived(id, options = {}) {
    return this.request("DELETE", `/v1/archive/${segment(id)}`, { answer: "nothing" }, options);
  }

  getRawArchived(id, options = {}) {
    return this.request("GET", `/v1/archive/${segment(id)}/raw`, { answer: "bytes" }, options);
  }

  listAudit(options = {}) {
    return this.request("GET", "/v1/audit", { answer: "json", query: ["tenant", "actor", "action", "target", "format", "limit", "cursor"] }, options);
  }

  allAudit(options = {}) {
    return this.pages((one) => this.listAudit(one), options);
  }

  followAudit(options = {}) {
    return this.request("GET", "/v1/audit/lines", { answer: "json", query: ["after", "limit", "wait", "format"] }, options);
  }

  listBatches(options = {}) {
    return this.request("GET", "/v1/batches", { answer: "json", query: ["limit", "cursor"] }, options);
  }

  allBatches(options = {}) {
    return this.pages((one) => this.listBatches(one), options);
  }

  getBatch(code, options = {}) {
    return this.request("GET", `/v1/batches/${segment(code)}`, { answer: "json" }, options);
  }

  activateBatch(code, options = {}) {
    return this.request("POST", `/v1/batches/${segment(code)}/activate`, { answer: "json" }, options);
  }

  suspendBatch(code, options = {}) {
    return this.request("POST", `/v1/batches/${segment(code)}/suspend`, { answer: "json" }, options);
  }

  listBulkActions(options = {}) {
    return this.request("GET", "/v1/bulk-actions", { answer: "json", query: ["limit", "cursor"] }, options);
  }

  allBulkActions(options = {}) {
    return this.pages((one) => this.listBulkActions(one), options);
  }

  createBulkAction(body, options = {}) {
    return this.request("POST", "/v1/bulk-actions", { answer: "json", body, query: ["dry_run"] }, options);
  }

  getBulkAction(id, options = {}) {
    return this.request("GET", `/v1/bulk-actions/${segment(id)}`, { answer: "json" }, options);
  }

  stopBulkAction(id, options = {}) {
    return this.request("POST", `/v1/bulk-actions/${segment(id)}/stop`, { answer: "json" }, options);
  }

  cleanUp(options = {}) {
    return this.request("POST", "/v1/cleanup", { answer: "json", query: ["older_than_seconds"] }, options);
  }

  listContacts(options = {}) {
    return this.request("GET", "/v1/contacts", { answer: "json", query: ["name", "limit", "cursor"] }, options);
  }

  allContacts(options = {}) {
    return this.pages((one) => this.listContacts(one), options);
  }

  createContact(body, options = {}) {
    return this.request("POST", "/v1/contacts", { answer: "json", body }, options);
  }

  getContact(id, options = {}) {
    return this.request("GET", `/v1/contacts/${segment(id)}`, { answer: "json" }, options);
  }

  changeContact(id, body, options = {}) {
    return this.request("PATCH", `/v1/contacts/${segment(id)}`, { answer: "json", body }, options);
  }

  deleteContact(id, options = {}) {
    return this.request("DELETE", `/v1/contacts/${segment(id)}`, { answer: "nothing" }, options);
  }

  listDeadLetters(options = {}) {
    return this.request("GET", "/v1/dead-letters", { answer: "json", query: ["account", "batch", "recipient", "tag", "request_id", "provider_message_id", "metadata", "subject", "error_code", "since", "until", "limit", "cursor"] }, options);
  }

  allDeadLetters(options = {}) {
    return this.pages((one) => this.listDeadLetters(one), options);
  }

  replayDeadLetters(body, options = {}) {
    return this.request("POST", "/v1/dead-letters/replay", { answer: "json", body }, options);
  }

  listSigningKeys(options = {}) {
    return this.request("GET", "/v1/dkim", { answer: "json", query: ["domain", "limit", "cursor"] }, options);
  }

  allSigningKeys(options = {}) {
    return this.pages((one) => this.listSigningKeys(one), options);
  }

  createSigningKey(body, options = {}) {
    return this.request("POST", "/v1/dkim", { answer: "json", body }, options);
  }

  getSigningKey(domain, selector, options = {}) {
    return this.request("GET", `/v1/dkim/${segment(domain)}/${segment(selector)}`, { answer: "json" }, options);
  }

  deleteSigningKey(domain, selector, options = {}) {
    return this.request("DELETE", `/v1/dkim/${segment(domain)}/${segment(selector)}`, { answer: "nothing" }, options);
  }

  activateSigningKey(domain, selector, options = {}) {
    return this.request("POST", `/v1/dkim/${segment(domain)}/${segment(selector)}/activate`, { answer: "json" }, options);
  }

  suspendSigningKey(domain, selector, options = {}) {
    return this.request("POST", `/v1/dkim/${segment(domain)}/${segment(selector)}/suspend`, { answer: "json" }, options);
  }

  listDomains(options = {}) {
    return this.request("GET", "/v1/domains", { answer: "json", query: ["limit", "cursor"] }, options);
  }

  allDomains(options = {}) {
    return this.pages((one) => this.listDomains(one), options);
  }

  deleteDomain(domain, options = {}) {
    return this.request("DELETE", `/v1/domains/${segment(domain)}`, { answer: "nothing" }, options);
  }

  checkDomain(domain, options = {}) {
    return this.request("POST", `/v1/domains/${segment(domain)}/check`, { answer: "json" }, options);
  }

  listDomainReports(domain, options = {}) {
    return this.request("GET", `/v1/domains/${segment(domain)}/reports`, { answer: "json", query: ["limit", "cursor"] }, options);
  }

  allDomainReports(domain, options = {}) {
    return this.pages((one) => this.listDomainReports(domain, one), options);
  }

  summarizeDomainReports(domain, options = {}) {
    return this.request("GET", `/v1/domains/${segment(domain)}/reports/summary`, { answer: "json", query: ["days"] }, options);
  }

  eraseAddress(body, options = {}) {
    return this.request("POST", "/v1/erase", { answer: "json", body }, options);
  }

  readEvents(options = {}) {
    return this.request("GET", "/v1/events", { answer: "json", query: ["after", "limit", "wait"] }, options);
  }

  listInbound(options = {}) {
    return this.request("GET", "/v1/inbound", { answer: "json", query: ["mailbox", "status", "kind", "limit", "cursor"] }, options);
  }

  allInbound(options = {}) {
    return this.pages((one) => this.listInbound(one), options);
  }

  replayInboundAll(body, options = {}) {
    return this.request("POST", "/v1/inbound/replay", { answer: "json", body }, options);
  }

  getInbound(id, options = {}) {
    return this.request("GET", `/v1/inbound/${segment(id)}`, { answer: "json" }, options);
  }

  getInboundAttachment(id, index, options = {}) {
    return this.request("GET", `/v1/inbound/${segment(id)}/attachments/${segment(index)}`, { answer: "bytes" }, options);
  }

  getInboundContent(id, options = {}) {
    return this.request("GET", `/v1/inbound/${segment(id)}/content`, { answer: "json" }, options);
  }

  previewInbound(id, options = {}) {
    return this.request("GET", `/v1/inbound/${segment(id)}/preview`, { answer: "text" }, options);
  }

  getRawInbound(id, options = {}) {
    return this.request("GET", `/v1/inbound/${segment(id)}/raw`, { answer: "bytes" }, options);
  }

  replayInbound(id, options = {}) {
    return this.request("POST", `/v1/inbound/${segment(id)}/replay`, { answer: "json" }, options);
  }

  resolveInbound(id, options = {}) {
    return this.request("POST", `/v1/inbound/${segment(id)}/resolve`, { answer: "json" }, options);
  }

  listMailboxes(options = {}) {
    return this.request("GET", "/v1/mailboxes", { answer: "json", query: ["limit", "cursor"] }, options);
  }

  allMailboxes(options = {}) {
    return this.pages((one) => this.listMailboxes(one), options);
  }

  createMailbox(body, options = {}) {
    return this.request("POST", "/v1/mailboxes", { answer: "json", body, query: ["dry_run"] }, options);
  }

  getMailbox(id, options = {}) {
    return this.request("GET", `/v1/mailboxes/${segment(id)}`, { answer: "json" }, options);
  }

  changeMailbox(id, body, options = {}) {
    return this.request("PATCH", `/v1/mailboxes/${segment(id)}`, { answer: "json", body }, options);
  }

  deleteMailbox(id, options = {}) {
    return this.request("DELETE", `/v1/mailboxes/${segment(id)}`, { answer: "nothing" }, options);
  }

  activateMailbox(id, options = {}) {
    return this.request("POST", `/v1/mailboxes/${segment(id)}/activate`, { answer: "json" }, options);
  }

  suspendMailbox(id, options = {}) {
    return this.request("POST", `/v1/mailboxes/${segment(id)}/suspend`, { answer: "json" }, options);
  }

  testMailbox(id, options = {}) {
    return this.request("POST", `/v1/mailboxes/${segment(id)}/test`, { answer: "json" }, options);
  }

  listMessages(options = {}) {
    return this.request("GET", "/v1/messages", { answer: "json", query: ["q", "status", "outcome", "held_by", "waiting", "account", "batch", "recipient", "subject", "tag", "metadata", "request_id", "provider_message_id", "error_code", "since", "until", "count", "limit", "cursor"] }, options);
  }

  allMessages(options = {}) {
    return this.pages((one) => this.listMessages(one), options);
  }

  sendMessage(body, options = {}) {
    return this.request("POST", "/v1/messages", { answer: "json", body, query: ["dry_run", "any_subject"], headers: {"idempotency_key": "Idempotency-Key", "on_doubt": "X-Postway-On-Doubt"}, keyed: true }, options);
  }

  sendBatch(body, options = {}) {
    return this.request("POST", "/v1/messages/batch", { answer: "json", body, query: ["dry_run", "any_subject"], headers: {"idempotency_key": "Idempotency-Key", "on_doubt": "X-Postway-On-Doubt"}, keyed: true }, options);
  }

  sendRawMessage(body, options = {}) {
    return this.request("POST", "/v1/messages/raw", { answer: "json", body, bodyType: "message/rfc822", query: ["id", "account", "from", "to", "batch", "priority", "send_at", "expires_at", "dsn", "on_doubt", "tag", "sensitive", "dry_run"], headers: {"idempotency_key": "Idempotency-Key"}, keyed: true }, options);
  }

  getMessage(id, options = {}) {
    return this.request("GET", `/v1/messages/${segment(id)}`, { answer: "json" }, options);
  }

  getMessageAttachment(id, index, options = {}) {
    return this.request("GET", `/v1/messages/${segment(id)}/attachments/${segment(index)}`, { answer: "bytes" }, options);
  }

  cancelMessage(id, options = {}) {
    return this.request("POST", `/v1/messages/${segment(id)}/cancel`, { answer: "json" }, options);
  }

  getMessageContent(id, options = {}) {
    return this.request("GET", `/v1/messages/${segment(id)}/content`, { answer: "json" }, options);
  }

  getMessageEvents(id, options = {}) {
    return this.request("GET", `/v1/messages/${segment(id)}/events`, { answer: "json", query: ["limit", "cursor"] }, options);
  }

  allMessageEvents(id, options = {}) {
    return this.pages((one) => this.getMessageEvents(id, one), options);
  }

  explainMessage(id, options = {}) {
    return this.request("GET", `/v1/messages/${segment(id)}/explain`, { answer: "json" }, options);
  }

  getMessagePayload(id, options = {}) {
    return this.request("GET", `/v1/messages/${segment(id)}/payload`, { answer: "bytes" }, options);
  }

  listPecReceipts(id, options = {}) {
    return this.request("GET", `/v1/messages/${segment(id)}/pec`, { answer: "json", query: ["limit", "cursor"] }, options);
  }

  allPecReceipts(id, options = {}) {
    return this.pages((one) => this.listPecReceipts(id, one), options);
  }

  exportPecReceipts(id, options = {}) {
    return this.request("GET", `/v1/messages/${segment(id)}/pec/export`, { answer: "bytes" }, options);
  }

  previewMessage(id, options = {}) {
    return this.request("GET", `/v1/messages/${segment(id)}/preview`, { answer: "text" }, options);
  }

  getRawMessage(id, options = {}) {
    return this.request("GET", `/v1/messages/${segment(id)}/raw`, { answer: "bytes" }, options);
  }

  rescheduleMessage(id, body, options = {}) {
    return this.request("POST", `/v1/messages/${segment(id)}/reschedule`, { answer: "json", body }, options);
  }

  resolveMessage(id, body, options = {}) {
    return this.request("POST", `/v1/messages/${segment(id)}/resolve`, { answer: "json", body }, options);
  }

  retryMessage(id, options = {}) {
    return this.request("POST", `/v1/messages/${segment(id)}/retry`, { answer: "json" }, options);
  }

  listNodes(options = {}) {
    return this.request("GET", "/v1/nodes", { answer: "json", query: ["limit", "cursor"] }, options);
  }

  allNodes(options = {}) {
    return this.pages((one) => this.listNodes(one), options);
  }

  listOutboxSources(options = {}) {
    return this.request("GET", "/v1/outbox", { answer: "json", query: ["limit", "cursor"] }, options);
  }

  allOutboxSources(options = {}) {
    return this.pages((one) => this.listOutboxSources(one), options);
  }

  getOverview(options = {}) {
    return this.request("GET", "/v1/overview", { answer: "json" }, options);
  }

  listRecipients(options = {}) {
    return this.request("GET", "/v1/recipients", { answer: "json", query: ["address", "external_id", "personal_number", "limit", "cursor"] }, options);
  }

  allRecipients(options = {}) {
    return this.pages((one) => this.listRecipients(one), options);
  }

  createRecipient(body, options = {}) {
    return this.request("POST", "/v1/recipients", { answer: "json", body, query: ["dry_run"] }, options);
  }

  getRecipient(id, options = {}) {
    return this.request("GET", `/v1/recipients/${segment(id)}`, { answer: "json" }, options);
  }

  changeRecipient(id, body, options = {}) {
    return this.request("PATCH", `/v1/recipients/${segment(id)}`, { answer: "json", body }, options);
  }

  deleteRecipient(id, options = {}) {
    return this.request("DELETE", `/v1/recipients/${segment(id)}`, { answer: "nothing" }, options);
  }

  listRoutes(options = {}) {
    return this.request("GET", "/v1/routes", { answer: "json", query: ["limit", "cursor"] }, options);
  }

  allRoutes(options = {}) {
    return this.pages((one) => this.listRoutes(one), options);
  }

  createRoute(body, options = {}) {
    return this.request("POST", "/v1/routes", { answer: "json", body }, options);
  }

  orderRoutes(body, options = {}) {
    return this.request("POST", "/v1/routes/order", { answer: "json", body }, options);
  }

  tryRoutes(body, options = {}) {
    return this.request("POST", "/v1/routes/try", { answer: "json", body }, options);
  }

  getRoute(id, options = {}) {
    return this.request("GET", `/v1/routes/${segment(id)}`, { answer: "json" }, options);
  }

  changeRoute(id, body, options = {}) {
    return this.request("PATCH", `/v1/routes/${segment(id)}`, { answer: "json", body }, options);
  }

  deleteRoute(id, options = {}) {
    return this.request("DELETE", `/v1/routes/${segment(id)}`, { answer: "nothing" }, options);
  }

  listRules(options = {}) {
    return this.request("GET", "/v1/rules", { answer: "json", query: ["mailbox", "limit", "cursor"] }, options);
  }

  allRules(options = {}) {
    return this.pages((one) => this.listRules(one), options);
  }

  createRule(body, options = {}) {
    return this.request("POST", "/v1/rules", { answer: "json", body }, options);
  }

  tryRule(body, options = {}) {
    return this.request("POST", "/v1/rules/dry-run", { answer: "json", body }, options);
  }

  getRule(id, options = {}) {
    return this.request("GET", `/v1/rules/${segment(id)}`, { answer: "json" }, options);
  }

  changeRule(id, body, options = {}) {
    return this.request("PATCH", `/v1/rules/${segment(id)}`, { answer: "json", body }, options);
  }

  deleteRule(id, options = {}) {
    return this.request("DELETE", `/v1/rules/${segment(id)}`, { answer: "nothing" }, options);
  }

  listScopedSuppressions(options = {}) {
    return this.request("GET", "/v1/scoped-suppressions", { answer: "json", query: ["stream", "installation", "limit", "cursor"] }, options);
  }

  allScopedSuppressions(options = {}) {
    return this.pages((one) => this.listScopedSuppressions(one), options);
  }

  createScopedSuppression(body, options = {}) {
    return this.request("POST", "/v1/scoped-suppressions", { answer: "json", body }, options);
  }

  deleteScopedSuppression(pattern, options = {}) {
    return this.request("DELETE", `/v1/scoped-suppressions/${segment(pattern)}`, { answer: "nothing", query: ["stream", "installation"] }, options);
  }

  rotateSecrets(options = {}) {
    return this.request("POST", "/v1/secrets/rotate", { answer: "json" }, options);
  }

  getStatistics(options = {}) {
    return this.request("GET", "/v1/statistics", { answer: "json", query: ["by", "since", "until", "account", "limit", "cursor"] }, options);
  }

  allStatistics(options = {}) {
    return this.pages((one) => this.getStatistics(one), options);
  }

  getStats(options = {}) {
    return this.request("GET", "/v1/stats", { answer: "json" }, options);
  }

  listStreams(options = {}) {
    return this.request("GET", "/v1/streams", { answer: "json", query: ["limit", "cursor"] }, options);
  }

  allStreams(options = {}) {
    return this.pages((one) => this.listStreams(one), options);
  }

  createStream(body, options = {}) {
    return this.request("POST", "/v1/streams", { answer: "json", body }, options);
  }

  getStream(id, options = {}) {
    return this.request("GET", `/v1/streams/${segment(id)}`, { answer: "json" }, options);
  }

  changeStream(id, body, options = {}) {
    return this.request("PATCH", `/v1/streams/${segment(id)}`, { answer: "json", body }, options);
  }

  deleteStream(id, options = {}) {
    return this.request("DELETE", `/v1/streams/${segment(id)}`, { answer: "nothing" }, options);
  }

  getStreamStatistics(id, options = {}) {
    return this.request("GET", `/v1/streams/${segment(id)}/statistics`, { answer: "json", query: ["by", "since", "until"] }, options);
  }

  listSuppressions(options = {}) {
    return this.request("GET", "/v1/suppressions", { answer: "json", query: ["limit", "cursor"] }, options);
  }

  allSuppressions(options = {}) {
    return this.pages((one) => this.listSuppressions(one), options);
  }

  createSuppression(body, options = {}) {
    return this.request("POST", "/v1/suppressions", { answer: "json", body }, options);
  }

  exportSuppressions(options = {}) {
    return this.request("GET", "/v1/suppressions/export", { answer: "text" }, options);
  }

  importSuppressions(body, options = {}) {
    return this.request("POST", "/v1/suppressions/import", { answer: "json", body, bodyType: "application/octet-stream", query: ["format"] }, options);
  }

  getSuppression(address, options = {}) {
    return this.request("GET", `/v1/suppressions/${segment(address)}`, { answer: "json" }, options);
  }

  changeSuppression(address, body, options = {}) {
    return this.request("PATCH", `/v1/suppressions/${segment(address)}`, { answer: "json", body }, options);
  }

  deleteSuppression(address, options = {}) {
    return this.request("DELETE", `/v1/suppressions/${segment(address)}`, { answer: "nothing" }, options);
  }

  listTemplates(options = {}) {
    return this.request("GET", "/v1/templates", { answer: "json", query: ["limit", "cursor"] }, options);
  }

  allTemplates(options = {}) {
    return this.pages((one) => this.listTemplates(one), options);
  }

  createTemplate(body, options = {}) {
    return this.request("POST", "/v1/templates", { answer: "json", body }, options);
  }

  previewSource(body, options = {}) {
    return this.request("POST", "/v1/templates/preview", { answer: "json", body }, options);
  }

  getTemplate(name, options = {}) {
    return this.request("GET", `/v1/templates/${segment(name)}`, { answer: "json", query: ["version"] }, options);
  }

  putTemplate(name, body, options = {}) {
    return this.request("PUT", `/v1/templates/${segment(name)}`, { answer: "json", body }, options);
  }

  deleteTemplate(name, options = {}) {
    return this.request("DELETE", `/v1/templates/${segment(name)}`, { answer: "nothing" }, options);
  }

  previewTemplate(name, body, options = {}) {
    return this.request("POST", `/v1/templates/${segment(name)}/preview`, { answer: "json", body }, options);
  }

  sendTemplateTest(name, body, options = {}) {
    return this.request("POST", `/v1/templates/${segment(name)}/test`, { answer: "json", body, headers: {"idempotency_key": "Idempotency-Key"}, keyed: true }, options);
  }

  listTemplateVersions(name, options = {}) {
    return this.request("GET", `/v1/templates/${segment(name)}/versions`, { answer: "json", query: ["limit", "cursor"] }, options);
  }

  allTemplateVersions(name, options = {}) {
    return this.pages((one) => this.listTemplateVersions(name, one), options);
  }

  getOwnTenant(options = {}) {
    return this.request("GET", "/v1/tenant", { answer: "json" }, options);
  }

  listTenants(options = {}) {
    return this.request("GET", "/v1/tenants", { answer: "json", query: ["limit", "cursor"] }, options);
  }

  allTenants(options = {}) {
    return this.pages((one) => this.listTenants(one), options);
  }

  createTenant(body, options = {}) {
    return this.request("POST", "/v1/tenants", { answer: "json", body, query: ["dry_run"] }, options);
  }

  getTenant(id, options = {}) {
    return this.request("GET", `/v1/tenants/${segment(id)}`, { answer: "json" }, options);
  }

  changeTenant(id, body, options = {}) {
    return this.request("PATCH", `/v1/tenants/${segment(id)}`, { answer: "json", body }, options);
  }

  deleteTenant(id, options = {}) {
    return this.request("DELETE", `/v1/tenants/${segment(id)}`, { answer: "nothing", query: ["confirm"] }, options);
  }

  activateTenant(id, options = {}) {
    return this.request("POST", `/v1/tenants/${segment(id)}/activate`, { answer: "json" }, options);
  }

  listKeys(id, options = {}) {
    return this.request("GET", `/v1/tenants/${segment(id)}/keys`, { answer: "json", query: ["limit", "cursor"] }, options);
  }

  allKeys(id, options = {}) {
    return this.pages((one) => this.listKeys(id, one), options);
  }

  createKey(id, body, options = {}) {
    return this.request("POST", `/v1/tenants/${segment(id)}/keys`, { answer: "json", body }, options);
  }

  revokeKey(id, key_id, options = {}) {
    return this.request("DELETE", `/v1/tenants/${segment(id)}/keys/${segment(key_id)}`, { answer: "nothing" }, options);
  }

  suspendTenant(id, options = {}) {
    return this.request("POST", `/v1/tenants/${segment(id)}/suspend`, { answer: "json" }, options);
  }

  verifyToken(body, options = {}) {
    return this.request("POST", "/v1/tokens/verify", { answer: "json", body }, options);
  }

  listUsers(options = {}) {
    return this.request("GET", "/v1/users", { answer: "json", query: ["limit", "cursor"] }, options);
  }

  allUsers(options = {}) {
    return this.pages((one) => this.listUsers(one), options);
  }

  createUser(body, options = {}) {
    return this.request("POST", "/v1/users", { answer: "json", body }, options);
  }

  getUser(name, options = {}) {
    return this.request("GET", `/v1/users/${segment(name)}`, { answer: "json" }, options);
  }

  changeUser(name, body, options = {}) {
    return this.request("PATCH", `/v1/users/${segment(name)}`, { answer: "json", body }, options);
  }

  deleteUser(name, options = {}) {
    return this.request("DELETE", `/v1/users/${segment(name)}`, { answer: "nothing" }, options);
  }

  inviteUser(name, options = {}) {
    return this.request("POST", `/v1/users/${segment(name)}/invitation`, { answer: "json" }, options);
  }

  listUserSessions(name, options = {}) {
    return this.request("GET", `/v1/users/${segment(name)}/sessions`, { answer: "json" }, options);
  }

  endUserSessions(name, options = {}) {
    return this.request("DELETE", `/v1/users/${segment(name)}/sessions`, { answer: "nothing" }, options);
  }

  listWebhooks(options = {}) {
    return this.request("GET", "/v1/webhooks", { answer: "json", query: ["limit", "cursor"] }, options);
  }

  allWebhooks(options = {}) {
    return this.pages((one) => this.listWebhooks(one), options);
  }

  createWebhook(body, options = {}) {
    return this.request("POST", "/v1/webhooks", { answer: "json", body }, options);
  }

  getWebhook(id, options = {}) {
    return this.request("GET", `/v1/webhooks/${segment(id)}`, { answer: "json" }, options);
  }

  changeWebhook(id, body, options = {}) {
    return this.request("PATCH", `/v1/webhooks/${segment(id)}`, { answer: "json", body }, options);
  }

  deleteWebhook(id, options = {}) {
    return this.request("DELETE", `/v1/webhooks/${segment(id)}`, { answer: "nothing" }, options);
  }

  listDeliveries(id, options = {}) {
    return this.request("GET", `/v1/webhooks/${segment(id)}/deliveries`, { answer: "json", query: ["status", "limit", "cursor"] }, options);
  }

  allDeliveries(id, options = {}) {
    return this.pages((one) => this.listDeliveries(id, one), options);
  }

  resendDelivery(id, uid, sequence, options = {}) {
    return this.request("POST", `/v1/webhooks/${segment(id)}/deliveries/${segment(uid)}/${segment(sequence)}/resend`, { answer: "json" }, options);
  }

  resendDeliveries(id, body, options = {}) {
    return this.request("POST", `/v1/webhooks/${segment(id)}/resend`, { answer: "json", body }, options);
  }

  rotateWebhookSecret(id, options = {}) {
    return this.request("POST", `/v1/webhooks/${segment(id)}/rotate`, { answer: "json" }, options);
  }

  testWebhook(id, options = {}) {
    return this.request("POST", `/v1/webhooks/${segment(id)}/test`, { answer: "json" }, options);
  }
}
