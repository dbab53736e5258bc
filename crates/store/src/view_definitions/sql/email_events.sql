SELECT {id} AS "emailLogId",
    w.word AS "type",
    {object:e.data:attempt=attempt,durationMs=duration_ms,sesMessageId=provider_message_id,errorCode=code,errorCategory=provider_category,errorMessage=message,originalCode=original_code,willRetry=will_retry,nextAttemptNumber=next_attempt,backoffDelay=backoff_ms,reason=reason,check=check,field=field,checks=checks,warnings=warnings} AS "metadata",
    {at:e.at} AS "createdAt",
    m.tenant AS "companyId",
    m.uid AS "message_uid"
FROM {rows:event} e
JOIN {rows:message} m ON m.uid = e.uid
JOIN {rows:content} c ON c.uid = m.uid
JOIN {words} w ON w.code = e.kind AND w.mark = {sense}
